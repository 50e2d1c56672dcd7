package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"notebox/record"
	"notebox/runner"
	"notebox/server/share"
	"notebox/storage"
)

// sharing has runs of a service put out what shares show.
func sharing(s *service, outputs ...string) {
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		if err := events.File(ctx, "sub/a b.csv", strings.NewReader("x,y\n1,2\n")); err != nil {
			return nil, err
		}
		return executed(spec, runner.StatusOK, outputs...), nil
	}
}

// ran is the id of a run of a key; "" is none.
func (s *service) ran(key, body string) string {
	s.t.Helper()
	return s.replied(s.do(s.with(body, bearer(key)...))).ID
}

func bearer(key string) []string {
	if key == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + key}
}

func sharePath(id string) string { return "/v1/executions/" + id + "/share" }

// shared shares a run, and returns the link.
func (s *service) shared(key, id string) share.Link {
	s.t.Helper()
	a := s.call(http.MethodPost, sharePath(id), bearer(key)...)
	require.Equal(s.t, http.StatusCreated, a.StatusCode, "%s", a.body)
	require.Equal(s.t, "no-store", a.Header.Get("Cache-Control"))
	var link share.Link
	require.NoError(s.t, json.Unmarshal(a.body, &link))
	require.Equal(s.t, link.URL, a.Header.Get("Location"))
	require.Equal(s.t, id, link.ID)
	return link
}

// seen asks for a page as a browser does.
func (s *service) seen(link string) answer {
	s.t.Helper()
	return s.call(http.MethodGet, strings.TrimPrefix(link, s.url), "Accept", "text/html,*/*;q=0.8")
}

// TestShare: a link shows code and outputs to who has no key, and nothing else of the run.
func TestShare(t *testing.T) {
	s := newService(t, withKeys(t, "alices", "bobs"))
	sharing(s, stdout("hello\n"), picture(""), display(map[string]any{"application/json": map[string]any{"name": "n", "url": "u"}}))
	id := s.ran("alices", `{"code":"# The sum of it\nprint('hello')","env":{"SECRET":"of-the-env"},"files":[{"name":"in.txt","text":"of-the-input"}]}`)
	link := s.shared("alices", id)
	require.True(t, strings.HasPrefix(link.URL, s.url+"/r/"+id+"?"))

	a := s.seen(link.URL)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	h := a.Header
	require.Equal(t, "text/html; charset=utf-8", h.Get("Content-Type"))
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	require.Contains(t, h.Get("X-Robots-Tag"), "noindex")
	policy := h.Get("Content-Security-Policy")
	require.Contains(t, policy, "sandbox allow-scripts")
	require.NotContains(t, policy, "allow-same-origin")
	require.NotContains(t, policy, "allow-top-navigation")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "'self'")
	require.Equal(t, "(response-origin)", h.Get("Connection-Allowlist"))
	page := string(a.body)
	for _, text := range []string{
		`<meta property="og:title" content="The sum of it">`, `<meta property="og:description" content="hello">`, "<title>The sum of it</title>",
		`<meta name="robots" content="noindex`, `<meta property="og:image:width" content="1">`, `"text":"hello\n"`, strings.TrimSpace(onePixel),
	} {
		require.Contains(t, page, text)
	}
	ofRun, _, _ := strings.Cut(page, `id="frame"`) // what follows is of the page alone
	for _, text := range []string{"of-the-env", "of-the-input", "in.txt", "alices", "/v1/files/", "owner"} {
		require.NotContains(t, ofRun, text)
	}

	var run record.Run
	a = s.call(http.MethodGet, strings.TrimPrefix(link.URL, s.url), "Accept", "application/json")
	require.NoError(t, json.Unmarshal(a.body, &run))
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.Equal(t, "python", run.Language)
	require.Equal(t, "ok", run.Status)
	require.Len(t, run.Cells, 1)
	require.Equal(t, "# The sum of it\nprint('hello')", run.Cells[0].Text)
	require.Len(t, run.Cells[0].Outputs, 3)
	require.JSONEq(t, `{"cell":0,"type":"display","data":{"application/json":{"name":"n","url":"u"}}}`, string(run.Cells[0].Outputs[2]), "what came out is as it was")
	require.Empty(t, run.Notes)

	// What chats do: the picture, and what else the run made, by the same signature.
	at, query, _ := strings.Cut(link.URL, "?")
	image := s.get(at + "/images/" + run.Images[0].Name + "?" + query + "&utm_source=x")
	require.Equal(t, http.StatusOK, image.StatusCode)
	require.Equal(t, "image/png", image.Header.Get("Content-Type"))
	require.Equal(t, "no-store", image.Header.Get("Cache-Control"))
	file := s.get(at + "/files/sub/a%20b.csv?" + query)
	require.Equal(t, "x,y\n1,2\n", string(file.body))
	require.Contains(t, file.Header.Get("Content-Disposition"), "attachment")
	for _, path := range []string{"/files/in.txt", "/files/..%2Fresult.json", "/files/../result.json", "/images/sub/a%20b.csv", "/share.jsonl", "/files/"} {
		require.Equal(t, http.StatusNotFound, s.get(at+path+"?"+query).StatusCode, path)
	}
	require.Equal(t, http.StatusForbidden, s.get(at+"/files/sub/a%20b.csv").StatusCode)
}

// TestShareIsItsOwners: nobody else makes or revokes a link, nor learns that there is a run.
func TestShareIsItsOwners(t *testing.T) {
	s := newService(t, withKeys(t, "alices", "bobs"))
	id := s.ran("alices", `{"code":"x"}`)
	link := s.shared("alices", id)
	for _, c := range []struct {
		desc, method, key, id string
		status                int
	}{
		{"another key shares", http.MethodPost, "bobs", id, 404},
		{"another key revokes", http.MethodDelete, "bobs", id, 404},
		{"no key shares", http.MethodPost, "", id, 401},
		{"no key revokes", http.MethodDelete, "", id, 401},
		{"no such run", http.MethodPost, "alices", "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", 404},
		{"not shared", http.MethodDelete, "alices", "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", 404},
		{"no id", http.MethodPost, "alices", "x", 404},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			require.Equal(t, c.status, s.call(c.method, sharePath(c.id), bearer(c.key)...).StatusCode)
		})
	}
	require.Equal(t, http.StatusOK, s.seen(link.URL).StatusCode)
}

// TestShareGoesOn: a run that has not ended is not shared.
func TestShareGoesOn(t *testing.T) {
	s := newService(t)
	runs := s.hold()
	id := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async)))
	a := s.call(http.MethodPost, sharePath(id))
	require.Equal(t, http.StatusConflict, a.StatusCode, "%s", a.body)
	close(runs.letGo)
	require.NoError(t, s.server.Wait(t.Context()))
	s.shared("", id)
}

// TestShareEnds: by its owner's word, at once for all services on the store, by its
// signature's time, and with the run's files.
func TestShareEnds(t *testing.T) {
	clock := new(testClock)
	store := sharedStore(t, "mem://", clock.now)
	lasting := func(c *Config) { c.Retention = 48 * time.Hour }
	s, other := newService(t, over(store, "a"), clock.set, lasting), newService(t, over(store, "b"), clock.set, lasting)
	id := s.ran("", `{"code":"x"}`)
	first := s.shared("", id)
	require.WithinDuration(t, clock.now().Add(storage.DefaultTTL), first.ExpiresAt, time.Second)
	elsewhere := strings.Replace(first.URL, s.url, other.url, 1)
	require.Equal(t, http.StatusOK, other.seen(elsewhere).StatusCode)
	require.Equal(t, first.URL, s.shared("", id).URL, "sharing again is the same share")

	for name, value := range map[string]string{"expires": "4102444800", "share": "AAAAAAAAAAAAAAAAAAAAAAAAAA", "signature": "x"} {
		u, err := url.Parse(first.URL)
		require.NoError(t, err)
		query := u.Query()
		query.Set(name, value)
		a := s.seen(u.Path + "?" + query.Encode())
		require.Equal(t, http.StatusForbidden, a.StatusCode, name)
		require.Contains(t, string(a.body), "not valid")
	}

	require.Equal(t, http.StatusNoContent, other.call(http.MethodDelete, sharePath(id)).StatusCode)
	for _, service := range []*service{s, other} {
		a := service.seen(strings.Replace(first.URL, s.url, service.url, 1))
		require.Equal(t, http.StatusNotFound, a.StatusCode)
		require.Equal(t, "text/html; charset=UTF-8", a.Header.Get("Content-Type"))
		require.Contains(t, string(a.body), "nothing is shared here")
		require.NotContains(t, string(a.body), "print")
	}
	require.Equal(t, http.StatusNotFound, s.call(http.MethodDelete, sharePath(id)).StatusCode)
	second := s.shared("", id)
	require.Equal(t, http.StatusOK, s.seen(second.URL).StatusCode)
	require.Equal(t, http.StatusNotFound, s.seen(first.URL).StatusCode, "a link that was revoked stays so")

	clock.advance(storage.DefaultTTL)
	a := s.seen(second.URL)
	require.Equal(t, http.StatusForbidden, a.StatusCode)
	require.Contains(t, string(a.body), "expired")
	clock.advance(23 * time.Hour)
	last := s.shared("", id)
	require.WithinDuration(t, clock.now().Add(time.Hour), last.ExpiresAt, time.Minute, "no later than the run's files")
	clock.advance(2 * time.Hour)
	require.Equal(t, http.StatusNotFound, s.seen(last.URL).StatusCode)
	require.Equal(t, http.StatusNotFound, s.call(http.MethodPost, sharePath(id)).StatusCode)
}

// TestShareHead: what code put out is text in the head, whatever it is.
func TestShareHead(t *testing.T) {
	s := newService(t)
	const hostile = `"><script>pwned=1</script><meta http-equiv="refresh" content="0;url=//evil"> '{run}{head}{record}`
	sharing(s, stdout(hostile+"\u202e\n"), picture(""))
	code, err := json.Marshal(map[string]string{"code": "# " + hostile + "</title><script>pwned=2</script>"})
	require.NoError(t, err)
	a := s.seen(s.shared("", s.ran("", string(code))).URL)
	head, _, found := strings.Cut(string(a.body), "<style>")
	require.True(t, found)
	require.NotContains(t, head, "<script")
	require.NotContains(t, head, `http-equiv="refresh"`)
	require.NotContains(t, head, "\u202e")
	require.Contains(t, head, `content="&#34;&gt;&lt;script&gt;pwned=1&lt;/script&gt;`)
	require.Contains(t, head, "{record}", "what looks like a part of the pattern is not filled in")
	data, _, found := strings.Cut(strings.SplitAfter(string(a.body), `id="run">`)[1], "</script>")
	require.True(t, found)
	var run record.Run
	require.NoError(t, json.Unmarshal([]byte(data), &run), "the run's data ends where it ends")
	require.Equal(t, hostile+"\u202e\n", outputText(t, run.Cells[0].Outputs[0]))
}

// meetingStore has all who store a share wait for each other, so that none has seen another's.
type meetingStore struct {
	Store
	all *sync.WaitGroup
}

func (m meetingStore) PutNew(ctx context.Context, key string, content []byte) error {
	if strings.HasSuffix(key, "/"+string(storage.KindShare)) {
		m.all.Done()
		m.all.Wait()
	}
	return m.Store.PutNew(ctx, key, content)
}

// TestSharesAtOnce: who shares one run at the same moment, at whatever service, gets a link that
// works.
func TestSharesAtOnce(t *testing.T) {
	for _, at := range []string{"mem://", "file://" + t.TempDir()} {
		store := sharedStore(t, at, nil)
		all := new(sync.WaitGroup)
		meeting := meetingStore{store, all}
		services := []*service{newService(t, over(meeting, "a")), newService(t, over(meeting, "b"))}
		id := services[0].ran("", `{"code":"x"}`)
		require.NoError(t, services[0].server.Wait(t.Context())) // else it has not ended, as the other sees it
		all.Add(len(services))
		links := make(chan string, len(services))
		var posts errgroup.Group
		for _, s := range services {
			posts.Go(func() error {
				answer, err := http.Post(s.url+sharePath(id), "", nil)
				if err != nil {
					return err
				}
				defer answer.Body.Close()
				if answer.StatusCode != http.StatusCreated {
					return fmt.Errorf("sharing is answered with %s", answer.Status)
				}
				links <- answer.Header.Get("Location")
				return nil
			})
		}
		require.NoError(t, posts.Wait())
		close(links)
		var shares []string
		for link := range links {
			u, err := url.Parse(link)
			require.NoError(t, err)
			shares = append(shares, u.Path+u.Query().Get("share"))
			for _, s := range services {
				require.Equal(t, http.StatusOK, s.seen(u.RequestURI()).StatusCode, link)
			}
		}
		require.Len(t, shares, 2)
		require.Equal(t, shares[0], shares[1], "one share")
	}
}

// conflictStore refuses the first write of a share, as S3 does with one of two at once; it may
// have stored another's meanwhile.
type conflictStore struct {
	Store
	stores  bool
	refused *atomic.Bool
}

func (c conflictStore) PutNew(ctx context.Context, key string, content []byte) error {
	if !strings.HasSuffix(key, "/"+string(storage.KindShare)) || c.refused.Swap(true) {
		return c.Store.PutNew(ctx, key, content)
	}
	if c.stores {
		if err := c.Store.PutNew(ctx, key, content); err != nil {
			return err
		}
	}
	return errors.New("ConditionalRequestConflict")
}

// TestShareInConflict: with another one that is stored, or with one that never is.
func TestShareInConflict(t *testing.T) {
	for _, stores := range []bool{true, false} {
		store := conflictStore{sharedStore(t, "mem://", nil), stores, new(atomic.Bool)}
		s := newService(t, over(store, "a"))
		link := s.shared("", s.ran("", `{"code":"x"}`))
		require.True(t, store.refused.Load())
		require.Equal(t, http.StatusOK, s.seen(link.URL).StatusCode)
	}
}

// TestAShareThatIsOverIsReplaced: once, by whoever shares the run again when the operator keeps
// files for longer.
func TestAShareThatIsOverIsReplaced(t *testing.T) {
	clock := new(testClock)
	store := sharedStore(t, "mem://", clock.now)
	short := newService(t, over(store, "a"), clock.set, func(c *Config) { c.Retention = time.Hour })
	id := short.ran("", `{"code":"x"}`)
	short.shared("", id)
	require.NoError(t, short.server.Wait(t.Context()))
	clock.advance(2 * time.Hour)
	s := newService(t, over(store, "b"), clock.set, func(c *Config) { c.Retention = 48 * time.Hour })
	links := make([]share.Link, 8)
	var posts sync.WaitGroup
	for i := range links {
		posts.Go(func() { links[i] = s.shared("", id) })
	}
	posts.Wait()
	for _, link := range links {
		require.Equal(t, http.StatusOK, s.seen(link.URL).StatusCode, link.URL)
	}
}

// TestAnOperatorEndsAShare by removing its object from the store, whosever it is.
func TestAnOperatorEndsAShare(t *testing.T) {
	folder := t.TempDir()
	s := newService(t, withKeys(t, "alices"), over(sharedStore(t, "file://"+folder, nil), "a"))
	id := s.ran("alices", `{"code":"x"}`)
	link := s.shared("alices", id)
	require.Equal(t, http.StatusOK, s.seen(link.URL).StatusCode)
	found, err := filepath.Glob(filepath.Join(folder, "runs", "*", id, "share.jsonl"))
	require.NoError(t, err)
	require.Len(t, found, 1, "as docs/operate.md says")
	require.NoError(t, os.Remove(found[0]))
	require.Equal(t, http.StatusNotFound, s.seen(link.URL).StatusCode)
}

func outputText(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var o struct{ Text string }
	require.NoError(t, json.Unmarshal(raw, &o))
	return o.Text
}
