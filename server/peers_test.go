package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/intake"
	"notebox/runner/runnertest"
	"notebox/server/native"
	"notebox/server/peers"
)

var peerSecret = []byte("0123456789abcdef0123456789abcdef")

// several are services behind one address: all that is known of it is a table, in place of
// a name server.
type several struct {
	all   []*service
	peers []*peers.Peers

	mu    sync.Mutex
	names []netip.Addr      // what the name stands for
	at    map[string]string // where the services are, by the addresses that they have for peers
	asked []string          // addresses to which there was a connection
	later time.Duration     // the services' clock
}

// newSeveral starts n services on one store, with sessions of their own.
func newSeveral(t *testing.T, n int, change ...func(*Config)) *several {
	g := &several{at: map[string]string{}}
	store := sharedStore(t, "mem://", nil)
	for i := range n {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		p, err := peers.New(peers.Config{
			Own: netip.AddrPortFrom(addr, 80), Secret: peerSecret, Names: []string{"notebox:80"},
			Lookup: g.lookup, Dial: g.dial, Now: g.now,
		})
		require.NoError(t, err)
		g.names = append(g.names, addr)
		s := newService(t, append([]func(*Config){over(store, fmt.Sprint("service-", i)), func(c *Config) {
			c.Peers, c.Sessions = p, &peers.Sessions{Sessions: calculating(t), Peers: p}
		}}, change...)...)
		g.all, g.peers = append(g.all, s), append(g.peers, p)
		g.at[p.Own()] = strings.TrimPrefix(s.url, "http://")
	}
	return g
}

func (g *several) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Add(g.later)
}

func (g *several) lookup(context.Context, string) ([]netip.Addr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.names) == 0 {
		return nil, errors.New("the name server is away")
	}
	return append([]netip.Addr(nil), g.names...), nil
}

func (g *several) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	g.asked = append(g.asked, address)
	real, ok := g.at[address]
	g.mu.Unlock()
	if !ok {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, network, real)
}

// connections are how many there were to peers.
func (g *several) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func (g *several) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func TestAnyServiceAnswersForASession(t *testing.T) {
	g := newSeveral(t, 3)
	id := g.all[0].open(`{"files":[{"name":"in.csv","content":"MQ=="}]}`).ID
	require.Regexp(t, "^ses_[0-9A-HJKMNP-TV-Z]{26}$", id, "as openapi.json has it")
	other := g.all[1]
	path := sessionsPath + "/" + id

	a := other.get(path)
	other.asDescribed("GET", "/v1/sessions/{id}", a)
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, []string{"nosniff"}, a.Header.Values("X-Content-Type-Options"), "said once")

	for _, c := range []struct{ desc, contentType, body string }{
		{"json", "application/json", `{"session":"` + id + `","code":"x = 1"}`},
		{"the query", "text/plain", "print(x)"},
		{"a form", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\nprint(x)\r\n" +
			"--b\r\nContent-Disposition: form-data; name=\"session\"\r\n\r\n" + id + "\r\n--b--\r\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			to := "/v1/execute"
			if c.desc == "the query" {
				to += "?session=" + id
			}
			r := other.replied(other.post(to, c.contentType, c.body))
			require.Equal(t, "ok", r.Status, r.Text)
			require.Equal(t, id, r.Session.ID)
			if c.desc != "json" {
				require.Equal(t, "1\n", r.Text)
			}
			require.True(t, strings.HasPrefix(r.Notebook.URL, other.url), "links start as the caller has asked: %s", r.Notebook.URL)
			require.Contains(t, string(g.all[2].get(strings.TrimPrefix(r.Notebook.URL, other.url)).body)+"x", "x")
			other.requireNoFiles()
		})
	}
	r := other.replied(other.inSession(id, `"code":"echo hi","language":"bash"`))
	require.Equal(t, "hi\n", r.Text)

	// Files, both ways, and larger than what is held in memory.
	big := strings.Repeat("0123456789", intake.SpoolMemory)
	a = other.put(path+"/files/a%2Fb%20c.txt", "no")
	require.Equal(t, 400, a.StatusCode, "%s", a.body)
	a = other.put(path+"/files/sub/big%20one.txt", big)
	require.Equal(t, 201, a.StatusCode, "%s", a.body)
	a = g.all[2].get(path + "/files/sub/big%20one.txt")
	require.Equal(t, big, string(a.body))
	require.Equal(t, int64(len(big)), a.ContentLength)
	head := g.all[2].call("HEAD", path+"/files/sub/big%20one.txt")
	require.Equal(t, int64(len(big)), head.ContentLength)
	require.Empty(t, head.body)
	list := other.get(path + "/files?recursive=true")
	require.Contains(t, string(list.body), "sub/big one.txt")
	moved := other.post(path+"/move", "application/json", `{"from":"sub/big one.txt","to":"big.txt"}`)
	require.Equal(t, 200, moved.StatusCode, "%s", moved.body)
	require.Equal(t, 204, other.call("DELETE", path+"/files/big.txt").StatusCode)
	require.Equal(t, 404, other.get(path+"/files/big.txt").StatusCode)

	require.Equal(t, 204, other.call("POST", path+"/interrupt").StatusCode)
	require.Equal(t, 200, other.call("POST", path+"/restart").StatusCode)
	r = other.replied(other.inSession(id, `"code":"print(x)"`))
	require.Equal(t, "error", r.Status, "x is lost")

	// A large body, which is on disk when its session is known.
	r = other.replied(other.inSession(id, `"code":"names","files":[{"name":"in.csv","text":"`+big+`"}]`))
	require.Contains(t, r.Text, "0123456789")
	other.requireNoFiles()

	require.Equal(t, 204, other.call("DELETE", path).StatusCode)
	g.all[2].requireRefused(g.all[2].get(path), 410, "it was closed")
	require.Empty(t, other.started(), "nothing ran elsewhere")
}

func TestEventsOfAPeer(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code := quoted(runnertest.CellSleep)
	events := g.all[1].stream(ctx, `{"session":"`+id+`","code":`+code+`}`)
	first, ok := events.next()
	require.True(t, ok)
	require.Equal(t, "started", first.name, "it came while the run goes on")
	var started struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(first.data), &started))
	require.Equal(t, 204, g.all[1].call("POST", sessionsPath+"/"+id+"/interrupt").StatusCode)
	last := first
	for e, more := events.next(); more; e, more = events.next() {
		if e.name != "" {
			last = e
		}
	}
	require.Equal(t, "done", last.name)
}

func TestAClientThatLeavesCancelsAtThePeer(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	ctx, cancel := context.WithCancel(context.Background())
	events := g.all[1].stream(ctx, `{"session":"`+id+`","code":`+quoted(runnertest.CellSleep)+`}`)
	_, ok := events.next()
	require.True(t, ok)
	cancel()
	require.Eventually(t, func() bool {
		return strings.Contains(string(g.all[0].get(sessionsPath+"/"+id).body), `"status":"idle"`)
	}, time.Minute, 10*time.Millisecond)
}

func TestRunsOfOneServiceAreReadAtAnother(t *testing.T) {
	g := newSeveral(t, 3)
	runs := g.all[0].hold()
	id := g.all[0].accepted(g.all[0].do(g.all[0].with(`{"code":"x"}`, "Prefer", async)))
	<-runs.started
	require.JSONEq(t, `{"id":"`+id+`","status":"running"}`, string(g.all[1].get("/v1/executions/"+id).body))
	a := g.all[2].call("DELETE", "/v1/executions/"+id+"?interrupt=true")
	require.Equal(t, 202, a.StatusCode, "%s", a.body)
	require.Equal(t, "cancelled", g.all[1].ends(id).Status)

	close(runs.letGo)
	first := g.all[0].replied(g.all[0].do(g.all[0].with(`{"code":"x"}`, "Idempotency-Key", "k")))
	again := g.all[1].replied(g.all[1].do(g.all[1].with(`{"code":"x"}`, "Idempotency-Key", "k")))
	require.Equal(t, first, again)
	require.Empty(t, g.all[1].started())

	// In a session of the third, by the first: asynchronous, with a key.
	session := g.all[2].open("{}").ID
	body := `{"session":"` + session + `","code":"x = 1"}`
	id = g.all[0].accepted(g.all[0].do(g.all[0].with(body, "Prefer", async, "Idempotency-Key", "s")))
	require.Equal(t, session, g.all[1].ends(id).Session.ID)
	require.Equal(t, id, g.all[1].replied(g.all[1].do(g.all[1].with(body, "Idempotency-Key", "s"))).ID)
}

func TestSessionsOfAllPeersAreListed(t *testing.T) {
	g := newSeveral(t, 3, withKeys(t, "one", "two"))
	auth := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	var want []string
	for _, s := range g.all {
		req := s.request("POST", sessionsPath, "", nil)
		req.Header.Set("X-API-Key", "one")
		want = append(want, s.opened(s.do(req)).ID)
		time.Sleep(1100 * time.Millisecond) // answers have times to the second
	}
	list := func(a answer) (ids []string) {
		require.Equal(t, 200, a.StatusCode, "%s", a.body)
		var all struct{ Sessions []native.SessionEntry }
		require.NoError(t, json.Unmarshal(a.body, &all))
		for _, s := range all.Sessions {
			ids = append(ids, s.ID)
		}
		return ids
	}
	a := g.all[1].call("GET", sessionsPath, auth("one")...)
	require.Equal(t, want, list(a))
	require.Empty(t, a.Header.Get("Notebox-Silent-Services"))
	require.Empty(t, list(g.all[1].call("GET", sessionsPath, auth("two")...)), "of another key")
	require.Equal(t, 404, g.all[1].call("GET", sessionsPath+"/"+want[0], auth("two")...).StatusCode)
	require.Equal(t, 401, g.all[1].get(sessionsPath+"/"+want[0]).StatusCode)
	require.Equal(t, 200, g.all[1].call("GET", sessionsPath+"/"+want[0], "X-API-Key", "one").StatusCode)

	g.change(func() { delete(g.at, "10.0.0.3:80") })
	a = g.all[1].call("GET", sessionsPath, auth("one")...)
	require.Equal(t, want[:2], list(a))
	require.Equal(t, "1", a.Header.Get("Notebox-Silent-Services"))
}

// TestAKeyIsCheckedAtBothServices: one that the second does not know is refused there.
func TestAKeyIsCheckedAtBothServices(t *testing.T) {
	var n int
	g := newSeveral(t, 2, func(c *Config) {
		keys := []string{"both", "first"}
		if n++; n == 2 {
			keys = keys[:1]
		}
		withKeys(t, keys...)(c)
	})
	req := g.all[0].request("POST", sessionsPath, "", nil)
	req.Header.Set("X-API-Key", "first")
	id := g.all[0].opened(g.all[0].do(req)).ID
	require.Equal(t, 401, g.all[1].call("GET", sessionsPath+"/"+id, "X-API-Key", "first").StatusCode)
	require.Equal(t, 404, g.all[1].call("GET", sessionsPath+"/"+id, "X-API-Key", "both").StatusCode)
	require.Zero(t, g.connections(), "an id of another owner's is not authentic")
	g.all[0], g.all[1] = g.all[1], g.all[0]
	req = g.all[0].request("POST", sessionsPath, "", nil)
	req.Header.Set("X-API-Key", "both")
	id = g.all[0].opened(g.all[0].do(req)).ID
	require.Equal(t, 200, g.all[1].call("GET", sessionsPath+"/"+id, "X-API-Key", "both").StatusCode)
}

func TestForgedIDsGoNowhere(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	for i := len("ses_"); i < len(id); i++ {
		forged := []byte(id)
		if forged[i]++; !strings.ContainsRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", rune(forged[i])) {
			forged[i] = '0'
		}
		require.Equal(t, 404, g.all[1].get(sessionsPath+"/"+string(forged)).StatusCode, "%s for %s", forged, id)
	}
	foreign, err := peers.New(peers.Config{Own: netip.MustParseAddrPort("10.0.0.1:80"), Secret: bytes.Repeat([]byte("f"), 32), Names: []string{"notebox:80"}})
	require.NoError(t, err)
	minted, err := foreign.Mint("ses_", "")
	require.NoError(t, err)
	require.Equal(t, 404, g.all[1].get(sessionsPath+"/ses_"+minted).StatusCode)
	g.all[1].requireRefused(g.all[1].inSession("ses_"+minted, `"code":"x"`), 404, "there is no such session")
	require.Zero(t, g.connections())
	require.Equal(t, 200, g.all[1].get(sessionsPath+"/"+id).StatusCode)
	require.Equal(t, 1, g.connections())
}

func TestASessionWhoseServiceIsGone(t *testing.T) {
	g := newSeveral(t, 3)
	id := g.all[0].open("{}").ID
	path := sessionsPath + "/" + id
	g.change(func() { delete(g.at, "10.0.0.1:80") })
	for _, a := range []answer{g.all[1].get(path), g.all[1].inSession(id, `"code":"x = 1"`), g.all[1].put(path+"/files/a", "b")} {
		g.all[1].requireRefused(a, 503, "does not answer")
		require.Equal(t, "5", a.Header.Get("Retry-After"))
	}
	g.change(func() { g.names = nil })
	g.all[2].requireRefused(g.all[2].get(path), 503, "cannot be found at this time")
	g.change(func() { g.names = []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")} })
	time.Sleep(1100 * time.Millisecond) // addresses are good for a second
	g.all[1].requireRefused(g.all[1].get(path), 503, "cannot be found at this time")
	g.change(func() { g.later = 2 * time.Minute }) // by then its address would be known
	for _, a := range []answer{g.all[1].get(path), g.all[1].inSession(id, `"code":"x = 1"`), g.all[1].call("DELETE", path)} {
		g.all[1].requireRefused(a, 410, "the service that had it has ended, or knows of it no more; its variables and files are lost")
	}
	require.Empty(t, g.all[1].started())
}

// TestAServiceThatKnowsNothingOfItsSession: another is at its address.
func TestAServiceThatKnowsNothingOfItsSession(t *testing.T) {
	g := newSeveral(t, 2)
	minted, err := g.peers[0].Mint("ses_", "")
	require.NoError(t, err)
	for _, s := range g.all {
		s.requireRefused(s.get(sessionsPath+"/ses_"+minted), 410, "knows of it no more")
	}
}

// TestNoRequestIsPassedOnTwice: two services whose addresses are mixed up.
func TestNoRequestIsPassedOnTwice(t *testing.T) {
	g := newSeveral(t, 3)
	id := g.all[0].open("{}").ID
	g.change(func() { g.at["10.0.0.1:80"] = g.at["10.0.0.3:80"] })
	a := g.all[1].get(sessionsPath + "/" + id)
	require.Equal(t, 403, a.StatusCode, "the header names another address: %s", a.body)
	require.Equal(t, 1, g.connections())

	// One that a peer has passed on to the wrong service, which knows the right one.
	client := g.peers[1].Client("10.0.0.3:80", http.Header{}, "http://127.0.0.1")
	g.change(func() { g.at["10.0.0.1:80"], g.asked = strings.TrimPrefix(g.all[0].url, "http://"), nil })
	res, err := client.Get("http://any" + sessionsPath + "/" + id)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, 503, res.StatusCode)
	require.Contains(t, string(raw), "another service has this session")
	require.Equal(t, 1, g.connections(), "it went no further")
}

func TestHeadersOfPeersCannotBeMadeUp(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	seen := make(chan *http.Request, 10)
	between, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	real := g.all[0].url
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Clone(context.Background())
		out, _ := http.NewRequest(r.Method, real+r.RequestURI, nil)
		out.Header, out.Host = r.Header, r.Host
		res, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	})}
	go func() { _ = server.Serve(between) }()
	t.Cleanup(func() { _ = server.Close() })
	g.change(func() { g.at["10.0.0.1:80"] = between.Addr().String() })
	require.Equal(t, 200, g.all[1].get(sessionsPath+"/"+id).StatusCode)
	caught := <-seen

	send := func(change func(*http.Request)) int {
		r := g.all[0].request(http.MethodGet, sessionsPath+"/"+id, "", nil)
		r.Host = caught.Host
		r.Header.Set(peers.Header, caught.Header.Get(peers.Header))
		change(r)
		return g.all[0].do(r).StatusCode
	}
	require.Equal(t, 403, send(func(*http.Request) {}), "it was used")
	require.Equal(t, 403, send(func(r *http.Request) { r.Method = http.MethodDelete }))
	require.Equal(t, 403, send(func(r *http.Request) { r.Header.Set(peers.Header, "x") }))
	require.Equal(t, 403, send(func(r *http.Request) { r.Header.Add(peers.Header, r.Header.Get(peers.Header)) }))
	require.Equal(t, 200, send(func(r *http.Request) { r.Header.Del(peers.Header); r.Host = "" }))

	alone := newService(t)
	require.Equal(t, 200, alone.call("GET", "/v1/environments", peers.Header, "x").StatusCode, "who has no peers does not look")
}

// TestBrowsersAreAskedOnce: without keys, a page of another site is refused by the first service,
// and the Host that a caller has used is none of the second one's.
func TestBrowsersAreAskedOnce(t *testing.T) {
	g := newSeveral(t, 2, func(c *Config) { c.PublicURL = "" })
	id := g.all[0].open("{}").ID
	r := g.all[1].request(http.MethodGet, sessionsPath+"/"+id, "", nil)
	r.Header.Set("Origin", g.all[1].url)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	require.Equal(t, 200, g.all[1].do(r).StatusCode)
	r.Header.Set("Origin", "https://evil.example")
	require.Equal(t, 403, g.all[1].do(r).StatusCode)
	require.Equal(t, 1, g.connections())
}

func TestToolCallsInASessionOfAPeer(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	for _, code := range []string{"x = 1", "print(x)"} {
		a := g.all[1].post("/v1/tools/call", "application/json",
			`{"session":"`+id+`","call":{"id":"c","type":"function","function":{"name":"execute_python","arguments":`+quoted(`{"code":"`+code+`"}`)+`}}}`)
		require.Equal(t, 200, a.StatusCode, "%s", a.body)
		require.Contains(t, string(a.body), `"ran":true`)
		if code == "print(x)" {
			require.Contains(t, string(a.body), `1\n`)
		}
	}
	require.Equal(t, 2, g.connections())
}

func TestDifySandboxOfAPeer(t *testing.T) {
	g := newSeveral(t, 2)
	call := func(s *service, name, body string) answer { return s.post("/"+name, "application/json", body) }
	var made struct {
		ID string `json:"sandbox_id"`
	}
	a := call(g.all[0], "create_sandbox", `{}`)
	require.Equal(t, 200, a.StatusCode, "%s", a.body)
	require.NoError(t, json.Unmarshal(a.body, &made))
	for name, body := range map[string]string{
		"write_file": `{"sandbox_id":"` + made.ID + `","remote_path":"in.csv","content":"7"}`,
		"run_code":   `{"sandbox_id":"` + made.ID + `","code":"names"}`,
	} {
		a = call(g.all[1], name, body)
		require.Equal(t, 200, a.StatusCode, "%s: %s", name, a.body)
	}
	a = call(g.all[1], "stop_sandbox", `{"sandbox_id":"`+made.ID+`"}`)
	require.Contains(t, string(a.body), "stopped")
	a = call(g.all[0], "stop_sandbox", `{"sandbox_id":"`+made.ID+`"}`)
	require.Contains(t, string(a.body), "not_found")
}

func TestMCPOfAPeer(t *testing.T) {
	g := newSeveral(t, 3)
	client := g.all[0].mcpClient("", nil)
	id := g.all[1].open("{}").ID // of a service that the client does not speak to
	run := func(code string) string {
		return mcpText(t, callMCP(t, client, "run_python", map[string]any{"code": code, "session": id}))
	}
	run("x = 1")
	require.Equal(t, "1", run("print(x)"))
	require.Contains(t, mcpText(t, callMCP(t, client, "write_file", map[string]any{"session": id, "path": "a.txt", "content": "hello"})), "a.txt")
	require.Contains(t, mcpJSON(t, callMCP(t, client, "read_file", map[string]any{"session": id, "path": "a.txt"})), "hello")
	require.Contains(t, mcpText(t, callMCP(t, client, "list_files", map[string]any{"session": id})), "a.txt")

	// The MCP session itself, of which each request goes to another service.
	mcpID := client.ID()
	for i, s := range g.all {
		req := s.request(http.MethodPost, mcpPath, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`))
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", mcpID)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
		a := s.do(req)
		require.Equal(t, 200, a.StatusCode, "%d: %s", i, a.body)
		require.Contains(t, string(a.body), "run_python")
		req = s.request(http.MethodDelete, mcpPath, "", nil)
		req.Header.Set("Mcp-Session-Id", strings.ToLower(mcpID))
		require.Equal(t, 404, s.do(req).StatusCode)
	}
	require.Contains(t, mcpText(t, callMCP(t, client, "close_session", map[string]any{"session": id})), "closed")
	g.change(func() { delete(g.at, "10.0.0.2:80") })
	gone := callMCP(t, client, "run_python", map[string]any{"code": "x", "session": id})
	require.True(t, gone.IsError)
	require.Contains(t, mcpText(t, gone), "does not answer")
}

func TestBodiesAreNotHeldInMemory(t *testing.T) {
	g := newSeveral(t, 2)
	id := g.all[0].open("{}").ID
	// A body that comes slowly: the peer has its begin before its end was sent.
	body, write := io.Pipe()
	done := make(chan answer, 1)
	go func() { done <- g.all[1].do(g.all[1].request("PUT", sessionsPath+"/"+id+"/files/slow", "", body)) }()
	_, err := write.Write([]byte("begin"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.connections() == 1 }, time.Minute, time.Millisecond)
	_, err = write.Write([]byte(" end"))
	require.NoError(t, err)
	require.NoError(t, write.Close())
	require.Equal(t, 201, (<-done).StatusCode)
	require.Equal(t, "begin end", string(g.all[1].get(sessionsPath+"/"+id+"/files/slow").body))
}
