package adversarial

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// startOwn starts a service for one check, without a pool, in a folder of its own. stop
// ends it, searches its log and store for the secrets, and wants that no container is left.
func (t *Trial) startOwn(ctx context.Context, program, name string, flags map[string]string) (s *Service, stop func() []Failure, err error) {
	folder := filepath.Join(planted.folder, name)
	all := map[string]string{"pool-size": "0", "pool-max": "0"}
	maps.Copy(all, flags)
	s, err = StartService(program, folder, fmt.Sprintf("adversarial-%d-%s", os.Getpid(), name), all, planted.env)
	if err != nil {
		return nil, nil, err
	}
	return s, func() (out []Failure) {
		for _, err := range []error{
			s.Stop(ctx), planted.canary.SearchFiles("the log", s.Log()),
			planted.canary.SearchFiles("the store", filepath.Join(folder, "files")),
		} {
			if err != nil {
				out = append(out, failed("%v", err))
			}
		}
		left, err := t.Daemon.Containers(ctx, s.ID)
		for end := time.Now().Add(removalTime); err == nil && len(left) > 0 && time.Now().Before(end); time.Sleep(settlePoll) {
			left, err = t.Daemon.Containers(ctx, s.ID)
		}
		if err != nil || len(left) > 0 {
			out = append(out, failed("containers after the end of %s: %q, %v", name, left, err))
		}
		return out
	}, nil
}

// removalTime bounds how long the daemon may go on removing containers of a service that
// has ended.
const removalTime = 10 * time.Second

// asker calls a service with a key.
type asker struct {
	ctx    context.Context
	client *Client
	key    string
	out    *[]Failure
}

// ask sends a request, which must have this status.
func (a *asker) ask(desc string, want int, r Request) *Answer {
	headers := map[string]string{}
	maps.Copy(headers, r.Headers)
	if a.key != "" {
		headers["Authorization"] = "Bearer " + a.key
	}
	r.Headers = headers
	got, err := a.client.Send(a.ctx, &r, nil)
	if err != nil {
		*a.out = append(*a.out, failed("%s: %v", desc, err))
		return &Answer{Header: http.Header{}}
	}
	if got[0].Status != want {
		f := failed("%s: HTTP %d, not %d: %s", desc, got[0].Status, want, shown(string(got[0].Body)))
		// A sandbox that does not start in time is the machine's.
		f.Late = want < 400 && got[0].Status == http.StatusServiceUnavailable
		*a.out = append(*a.out, f)
	}
	return got[0]
}

// twoKeys has one key ask for what another one made: none of it is there. What is there
// and what never was are answered alike.
func twoKeys(ctx context.Context, t *Trial) (out []Failure) {
	keys := []string{planted.canary.Secret("the first API key"), planted.canary.Secret("the second API key")}
	file := filepath.Join(planted.folder, "api-keys")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		return []Failure{failed("%v", err)}
	}
	s, stop, err := t.startOwn(ctx, planted.program, "two-keys", map[string]string{"api-keys-file": file})
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	client := &Client{URL: s.URL, Seen: planted.canary.SearchAnswer}
	a, b := &asker{ctx, client, keys[0], &out}, &asker{ctx, client, keys[1], &out}
	for desc, nobody := range map[string]*asker{
		"no key": {ctx, client, "", &out}, "a wrong key": {ctx, client, keys[0] + "x", &out}, "half a key": {ctx, client, keys[0][:10], &out},
	} {
		nobody.ask(desc, 401, Request{Code: "0"})
		nobody.ask(desc, 401, Request{Method: http.MethodGet, Path: "/v1/executions/run_0"})
		nobody.ask(desc, 401, Request{Method: http.MethodGet, Path: "/v1/environments"})
	}

	async := a.ask("an asynchronous run", 202, Request{Code: "import time; time.sleep(60)", Timeout: 60, Headers: map[string]string{"Prefer": "respond-async"}})
	path := async.Header.Get("Location")
	if !strings.HasPrefix(path, "/v1/executions/run_") {
		return append(append(out, failed("its Location is %q", path)), stop()...)
	}
	never := "/v1/executions/run_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		theirs := b.ask("another key's run", 404, Request{Method: method, Path: path})
		unknown := b.ask("nobody's run", 404, Request{Method: method, Path: never})
		if string(theirs.Body) != string(unknown.Body) {
			out = append(out, failed("%s tells another key's run from none: %s and %s", method, theirs.Body, unknown.Body))
		}
	}
	if got := a.ask("its own run", 200, Request{Method: http.MethodGet, Path: path}); !strings.Contains(string(got.Body), `"running"`) {
		out = append(out, failed("another key's DELETE ended the run: %s", got.Body))
	}
	a.ask("its own run's end", 202, Request{Method: http.MethodDelete, Path: path})

	same := map[string]string{"Idempotency-Key": "one-key-for-both"}
	first := a.ask("an idempotent run", 200, Request{Code: "print('of a')", Headers: same})
	second := b.ask("the same key, another body", 200, Request{Code: "print('of b')", Headers: same})
	again := a.ask("the same again", 200, Request{Code: "print('of a')", Headers: same})
	a.ask("another body", 409, Request{Code: "print('of b')", Headers: same})
	if first.Reply == nil || second.Reply == nil || again.Reply == nil {
		return append(out, stop()...) // which has been said
	}
	if first.Reply.ID != again.Reply.ID ||
		first.Reply.ID == second.Reply.ID || second.Reply.Text != "of b\n" {
		out = append(out, failed("the idempotent replies are %s, %s and %s", first.Body, second.Body, again.Body))
	}
	return append(out, stop()...)
}

// origins are a web server on all of loopback: it serves what a client may have on one
// port, and what nobody may have on another.
type origins struct {
	open, closed net.Listener
	hits         atomic.Int64 // on closed
}

func startOrigins() (*origins, error) {
	o := new(origins)
	var err error
	if o.open, err = net.Listen("tcp4", "0.0.0.0:0"); err != nil {
		return nil, err
	}
	if o.closed, err = net.Listen("tcp4", "0.0.0.0:0"); err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(o.open, http.HandlerFunc(o.serve)) }()
	go func() {
		_ = http.Serve(o.closed, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			o.hits.Add(1)
			_, _ = io.WriteString(w, "inside")
		}))
	}()
	return o, nil
}

func (o *origins) close() {
	_ = o.open.Close()
	_ = o.closed.Close()
}

func port(l net.Listener) string {
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

func (o *origins) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/redirect":
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	case "/circle":
		http.Redirect(w, r, "/circle", http.StatusMovedPermanently)
	case "/missing":
		http.Error(w, "a page that says 404", http.StatusNotFound)
	case "/announced":
		w.Header().Set("Content-Length", "10000000000")
		_, _ = io.WriteString(w, "x")
	case "/endless":
		for _, err := w.Write(nil); err == nil; {
			_, err = w.Write(make([]byte, 32<<10))
		}
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "x")
	case "/where":
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		host, _, _ := net.SplitHostPort(local.String())
		_, _ = io.WriteString(w, host)
	default:
		_, _ = io.WriteString(w, "content")
	}
}

// fetchedURLs has the service fetch from servers of this check: from addresses that are
// refused, by redirects that lead there from one that is allowed, and by a name that is
// another address at each look.
func fetchedURLs(ctx context.Context, t *Trial) (out []Failure) {
	o, err := startOrigins()
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	defer o.close()
	program, dns, err := withResolver()
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	defer dns.close()
	s, stop, err := t.startOwn(ctx, program, "fetching", map[string]string{
		"fetch-allow": "127.0.0.1:" + port(o.open) + ",127.0.0.2/32", "max-upload": "1MiB",
	})
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	f := &fetching{
		asker:  asker{ctx, &Client{URL: s.URL, Seen: planted.canary.SearchAnswer}, "", &out},
		open:   "http://127.0.0.1:" + port(o.open),
		closed: ":" + port(o.closed),
	}
	f.hosts(t.Service.URL)
	f.redirects()
	f.contents()
	if dns.conn != nil {
		f.names(dns)
	} else {
		fmt.Println("F7: this machine does not give a service a resolver of its own (unshare, as root); a name that rebinds is shown by the tests of package server")
	}
	if n := o.hits.Load(); n > 0 {
		out = append(out, failed("the server that nobody may fetch from was asked %d times", n))
	}
	return append(out, stop()...)
}

// fetching asks for files by URL.
type fetching struct {
	asker
	open   string // what the allowed server's URLs begin with
	closed string // ":port" of the other
}

const refusedAddress = "its host is not at an address that may be fetched from"

func (f *fetching) refused(url, why string) {
	a := f.ask(url, 422, Request{Code: "0", Fields: map[string]any{"files": []any{map[string]any{"name": "a", "url": url}}}})
	if a.Problem != nil && a.Problem.Detail != "files[0].url: "+why {
		*f.out = append(*f.out, failed("%s: %s", url, a.Problem.Detail))
	}
}

// got runs code that prints the file's content, which must be this.
func (f *fetching) got(url, want string) {
	a := f.ask(url, 200, Request{Code: "print(open('/mnt/data/a').read(), end='')",
		Fields: map[string]any{"files": []any{map[string]any{"name": "a", "url": url}}}})
	if a.Reply != nil && strings.TrimSuffix(a.Reply.Text, "\n") != want {
		*f.out = append(*f.out, failed("%s is %s, not %s", url, shown(a.Reply.Text), want))
	}
}

// hosts are those of this machine: loopback, its own addresses, the service itself.
func (f *fetching) hosts(service string) {
	f.refused(service+"/healthz", refusedAddress)
	for _, host := range []string{"127.0.0.1", "localhost", "127.0.0.3", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		f.refused("http://"+host+f.closed+"/", refusedAddress)
	}
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if ip, _, err := net.ParseCIDR(address.String()); err == nil && ip.To4() != nil {
			f.refused("http://"+ip.String()+f.closed+"/", refusedAddress)
		}
	}
}

func (f *fetching) redirects() {
	for to, why := range map[string]string{
		"http://127.0.0.1" + f.closed + "/":        refusedAddress,
		"http://localhost" + f.closed + "/":        refusedAddress,
		"http://169.254.169.254/latest/meta-data/": refusedAddress,
		"//127.0.0.1" + f.closed + "/":             refusedAddress,
		"file:///etc/passwd":                       "only http and https are fetched",
		"http://u:p@127.0.0.1" + f.closed + "/":    "must not have a user or password in it",
		f.open + "/missing":                        "the server answered 404 Not Found",
		"/circle":                                  "it redirects too often",
	} {
		f.refused(f.open+"/redirect?to="+to, why)
	}
}

func (f *fetching) contents() {
	f.refused(f.open+"/missing", "the server answered 404 Not Found")
	f.refused(f.open+"/announced", "it is larger than what may be fetched")
	f.refused(f.open+"/endless", "it is larger than what may be fetched")
	f.refused(f.open+"/gzip", "the server answered in a content encoding that was not asked for")
	f.got(f.open+"/good", "content")
}

// names: those of numbers are none. inner.test is loopback; rebind.test is an allowed address when it is first
// asked for, and loopback ever after.
func (f *fetching) names(dns *resolver) {
	port := f.open[strings.LastIndexByte(f.open, ':'):]
	for _, host := range []string{"2130706433", "0x7f.1", "127.1", "017700000001", "127.0.0.1.nip.test"} {
		f.refused("http://"+host+f.closed+"/", "its host was not found")
	}
	f.refused("http://inner.test"+f.closed+"/", refusedAddress)
	f.got("http://rebind.test"+port+"/where", "127.0.0.2")
	f.refused("http://rebind.test"+port+"/where", refusedAddress)
	f.refused(f.open+"/redirect?to=http://rebind.test"+port+"/where", refusedAddress)
	if n := dns.asked.Load(); n != 3 {
		*f.out = append(*f.out, failed("rebind.test was looked up %d times for 3 fetches", n))
	}
}

// resolver is a name server, on a loopback address of its own.
type resolver struct {
	conn  net.PacketConn
	asked atomic.Int64 // for an IPv4 address of rebind.test
	all   sync.WaitGroup
}

func (r *resolver) close() {
	if r.conn != nil {
		_ = r.conn.Close()
		r.all.Wait()
	}
}

// withResolver returns a program that is notebox, in a view of this machine's files in
// which the resolver is the one name server. If this machine does not let that be
// made, it is notebox as it is, and the resolver has no connection.
func withResolver() (program string, r *resolver, err error) {
	r = new(resolver)
	const address = "127.0.77.53"
	if exec.Command("unshare", "--mount", "mount", "--bind", "/etc/resolv.conf", "/etc/resolv.conf").Run() != nil {
		return planted.program, r, nil
	}
	conn, err := net.ListenPacket("udp4", address+":53")
	if err != nil {
		return planted.program, r, nil
	}
	r.conn = conn
	r.all.Go(r.serve)
	settings := filepath.Join(planted.folder, "resolv.conf")
	program = filepath.Join(planted.folder, "notebox-with-resolver")
	if err = os.WriteFile(settings, []byte("nameserver "+address+"\noptions timeout:30\n"), 0o644); err == nil {
		err = os.WriteFile(program, []byte(fmt.Sprintf(`#!/bin/sh
exec unshare --mount sh -c 'mount --bind %s /etc/resolv.conf && exec "$@"' sh %s "$@"
`, settings, planted.program)), 0o755)
	}
	return program, r, err
}

func (r *resolver) serve() {
	packet := make([]byte, 1500)
	for {
		n, from, err := r.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
		ip := [4]byte{127, 0, 0, 1}
		switch {
		case q.Name.String() != "rebind.test." && q.Name.String() != "inner.test.":
			reply.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			if q.Name.String() == "rebind.test." && r.asked.Add(1) == 1 {
				ip = [4]byte{127, 0, 0, 2}
			}
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: ip},
			}}
		}
		if raw, err := reply.Pack(); err == nil {
			_, _ = r.conn.WriteTo(raw, from)
		}
	}
}
