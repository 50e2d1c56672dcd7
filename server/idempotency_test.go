package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/ledger"
	"notebox/runner"
	"notebox/storage"
)

// testClock is set by hand, and read by several services.
type testClock struct{ ahead atomic.Int64 }

func (c *testClock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *testClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *testClock) set(cfg *Config)         { cfg.Now = c.now }

const idempotent = "Idempotency-Key"

func TestSameKeyAndRequest(t *testing.T) {
	form := func() (contentType, body string) {
		return formBody(formPart{`name="code"`, "x"}, formPart{`name="files"; filename="b"`, "2"}, formPart{`name="files"; filename="a"`, "1"})
	}
	files := `"files":[{"name":"a","content":"MQ=="},{"name":"b","content":"Mg=="}]`
	for _, c := range []struct {
		desc, first, second string
		same                bool
	}{
		{"the same", `{"code":"x"}`, `{"code":"x"}`, true},
		{"in another order", `{"code":"x","timeout":3,"env":{"A":"1","B":"2"}}`, `{ "env":{"B":"2","A":"1"}, "timeout":3.0, "code":"\u0078"}`, true},
		{"files", `{"code":"x",` + files + `}`, `{"code":"x","files":[{"name":"b","content":"Mg=="},{"name":"a","content":"MQ=="}]}`, true},
		{"a notebook", `{"notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":"x"}]}}`, `{"notebook":{"cells":[{"source":"x","cell_type":"code"}],"nbformat":4}}`, true},
		{"another code", `{"code":"x"}`, `{"code":"y"}`, false},
		{"another timeout", `{"code":"x"}`, `{"code":"x","timeout":3}`, false},
		{"another variable", `{"code":"x","env":{"A":"1"}}`, `{"code":"x","env":{"A":"2"}}`, false},
		{"another language", `{"code":"x"}`, `{"code":"x","language":"r"}`, false},
		{"another stop_on_error", `{"code":"x"}`, `{"code":"x","stop_on_error":false}`, false},
		{"another name", `{"code":"x","files":[{"name":"a","content":"MQ=="}]}`, `{"code":"x","files":[{"name":"b","content":"MQ=="}]}`, false},
		{"another content", `{"code":"x","files":[{"name":"a","content":"MQ=="}]}`, `{"code":"x","files":[{"name":"a","content":"Mg=="}]}`, false},
		{"another notebook", `{"notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":"x"}]}}`, `{"notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":"y"}]}}`, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			first := s.do(s.with(c.first, idempotent, "k"))
			s.replied(first)
			second := s.do(s.with(c.second, idempotent, "k"))
			require.Len(t, s.started(), 1)
			s.requireNoFiles()
			if c.same {
				require.Equal(t, 200, second.StatusCode, "%s", second.body)
				require.Equal(t, string(first.body), string(second.body))
				return
			}
			require.Equal(t, 409, second.StatusCode)
			require.Contains(t, string(second.body), "Idempotency-Key: was used for another request")
			s.replied(s.do(s.with(c.second, idempotent, "other")))
		})
	}
	t.Run("forms have boundaries of their own", func(t *testing.T) {
		s := newService(t)
		bodies := map[string]bool{}
		for range 2 {
			contentType, body := form()
			req := s.request("POST", "/v1/execute", contentType, strings.NewReader(body))
			req.Header.Set(idempotent, "k")
			bodies[string(s.do(req).body)] = true
		}
		bodies[string(s.do(s.with(`{"code":"x",`+files+`}`, idempotent, "k")).body)] = true
		require.Len(t, bodies, 1)
		s.only()
	})
	t.Run("keys of two owners are two", func(t *testing.T) {
		s := newService(t, withKeys(t, "one", "two"))
		a := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k", "X-API-Key", "one")))
		b := s.replied(s.do(s.with(`{"code":"y"}`, idempotent, "k", "X-API-Key", "two")))
		require.NotEqual(t, a.ID, b.ID)
	})
	t.Run("images are part of it", func(t *testing.T) {
		s := newService(t)
		s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
		req := s.with(`{"code":"x"}`, idempotent, "k")
		req.URL.RawQuery = "images=url"
		require.Equal(t, 409, s.do(req).StatusCode)
	})
}

// TestOneRunForManyRequests sends twenty at once to two services.
func TestOneRunForManyRequests(t *testing.T) {
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		t.Run(url[:4], func(t *testing.T) {
			store := sharedStore(t, url, nil)
			services := []*service{newService(t, over(store, "a")), newService(t, over(store, "b"))}
			var runs [2]*held
			for i, s := range services {
				runs[i] = s.hold()
			}
			var all sync.WaitGroup
			bodies := make([]string, 20)
			for i := range bodies {
				all.Go(func() {
					s := services[i%2]
					a := s.do(s.with(`{"code":"x"}`, idempotent, "k"))
					bodies[i] = a.Status + string(a.body)
				})
			}
			time.Sleep(300 * time.Millisecond)
			close(runs[0].letGo)
			close(runs[1].letGo)
			all.Wait()
			require.EqualValues(t, 1, runs[0].count.Load()+runs[1].count.Load())
			for _, body := range bodies {
				require.Equal(t, bodies[0], body)
			}
			require.Contains(t, bodies[0], "200 OK")
			leases := 0
			for key, err := range store.List(t.Context(), storage.RecordKey("executions")) {
				require.NoError(t, err)
				if strings.HasSuffix(key, ".lease") {
					leases++
				}
			}
			require.Equal(t, 1, leases, "those that came too late leave nothing")
		})
	}
}

func TestAsynchronousAndIdempotent(t *testing.T) {
	store := sharedStore(t, "mem://", nil)
	s, other := newService(t, over(store, "a")), newService(t, over(store, "b"))
	runs := s.hold()
	send := func(s *service) string {
		return s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
	}
	id := send(s)
	require.Equal(t, id, send(s))
	require.Equal(t, id, send(other))
	close(runs.letGo)
	r := s.ends(id)
	require.Equal(t, id, send(s), "also when it has ended")
	require.Equal(t, id, send(other))
	require.Equal(t, r, other.replied(other.do(other.with(`{"code":"x"}`, idempotent, "k"))))
	require.EqualValues(t, 1, runs.count.Load())
	require.Empty(t, other.started())
}

func TestStreamThatJoins(t *testing.T) {
	store := sharedStore(t, "mem://", nil)
	s, other := newService(t, over(store, "a")), newService(t, over(store, "b"))
	runs := s.hold()
	id := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
	answers := make(chan answer, 2)
	for _, at := range []*service{s, other} {
		go func() {
			answers <- at.do(at.with(`{"code":"x"}`, idempotent, "k", "Accept", "text/event-stream"))
		}()
	}
	time.Sleep(50 * time.Millisecond)
	close(runs.letGo)
	for range 2 {
		a := <-answers
		require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
		var names []string
		for line := range strings.Lines(string(a.body)) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
		require.Equal(t, []string{"started", "output", "done"}, names)
		require.Contains(t, string(a.body), "event: started\ndata: {\"id\":\""+id+"\"}\n")
		require.Contains(t, string(a.body), "event: done\ndata: {\"id\":\""+id+"\"")
	}
	require.EqualValues(t, 1, runs.count.Load())
}

// TestFailureIsNoReply: what the service failed at is run again, also with another body.
func TestFailureIsNoReply(t *testing.T) {
	s := newService(t)
	failures := []error{
		&runner.Error{Code: runner.CodeFull, Message: "full", RetryAfter: time.Second},
		&runner.Error{Code: runner.CodeEnv, Message: "env"}, http.ErrAbortHandler,
	}
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		if n := len(s.started()); n <= len(failures) {
			return nil, failures[n-1]
		}
		return executed(spec, runner.StatusOK), nil
	}
	for _, status := range []int{503, 422, 500} {
		a := s.do(s.with(`{"code":"x"}`, idempotent, "k"))
		require.Equal(t, status, a.StatusCode)
		require.Equal(t, status == 503, a.Header.Get("Retry-After") != "")
	}
	first := s.replied(s.do(s.with(`{"code":"y"}`, idempotent, "k")))
	require.Equal(t, first, s.replied(s.do(s.with(`{"code":"y"}`, idempotent, "k"))))
	require.Len(t, s.started(), 4)
	s.requireNoFiles()
}

func TestClientOfAnIdempotentRunLeaves(t *testing.T) {
	s := newService(t)
	runs := s.hold()
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultTransport.RoundTrip(s.with(`{"code":"x"}`, idempotent, "k").WithContext(ctx))
		gone <- err
	}()
	id := <-runs.started
	leave()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return strings.Contains(s.logged.String(), "status=499") }, time.Minute, 5*time.Millisecond)
	close(runs.letGo)
	r := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
	require.Equal(t, id, r.ID)
	require.Equal(t, "ok", r.Status)
}

// TestServiceThatIsKilled: what it ran is cut off; with its key it is run again, once,
// and what had ended gives its reply.
func TestServiceThatIsKilled(t *testing.T) {
	for _, c := range []struct {
		desc, next string
		wait       time.Duration // until it is taken for dead
	}{
		{"and starts again", "a", 0},
		{"while another goes on", "b", ledger.LeaseTime + ledger.ClockSkew + time.Second},
	} {
		t.Run(c.desc, func(t *testing.T) {
			clock := new(testClock)
			store := sharedStore(t, "file://"+t.TempDir(), clock.now)
			mortal := &mortalStore{Store: store}
			killed := newService(t, over(mortal, "a"), clock.set)
			first := killed.replied(killed.do(killed.with(`{"code":"ended"}`, idempotent, "ended")))
			runs := killed.hold()
			plain := killed.accepted(killed.do(killed.with(`{"code":"x"}`, "Prefer", async)))
			cut := killed.accepted(killed.do(killed.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
			mortal.dead.Store(true)

			s := newService(t, over(store, c.next), clock.set)
			if c.wait > 0 {
				require.Contains(t, string(s.get("/v1/executions/"+cut).body), "running")
				require.Equal(t, cut, s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k"))))
				clock.advance(c.wait)
			}
			for _, id := range []string{plain, cut} {
				a := s.get("/v1/executions/" + id)
				require.Equal(t, 410, a.StatusCode, "%s", a.body)
				require.Contains(t, string(a.body), "the service that ran this ended before the run did")
				require.Equal(t, 204, s.call("DELETE", "/v1/executions/"+id).StatusCode)
			}
			require.Equal(t, first, s.replied(s.do(s.with(`{"code":"ended"}`, idempotent, "ended"))))
			require.Equal(t, 409, s.do(s.with(`{"code":"other"}`, idempotent, "k")).StatusCode)
			require.Empty(t, s.started())

			again := s.hold()
			close(again.letGo)
			var all sync.WaitGroup
			ids := make([]string, 10)
			for i := range ids {
				all.Go(func() {
					var r replyJSON
					_ = json.Unmarshal(s.do(s.with(`{"code":"x"}`, idempotent, "k")).body, &r)
					ids[i] = r.ID
				})
			}
			all.Wait()
			require.EqualValues(t, 1, again.count.Load(), "once")
			for _, id := range ids {
				require.Equal(t, <-again.started, id)
				again.started <- id
			}
			require.NotEqual(t, cut, ids[0])

			// The one that was killed was only paused, as it turns out.
			mortal.dead.Store(false)
			if c.wait > 0 {
				require.Eventually(t, func() bool { return !killed.server.Executor.Here("", cut) }, ledger.RenewEvery+3*time.Second, 10*time.Millisecond)
				require.Contains(t, killed.logged.String(), "taken over")
				require.Equal(t, 410, s.get("/v1/executions/"+cut).StatusCode, "it stored nothing")
			}
			close(runs.letGo)
		})
	}
}

// TestOwnerDiesWhileOthersWait: they are told to come again, and are run then.
func TestOwnerDiesWhileOthersWait(t *testing.T) {
	clock := new(testClock)
	store := sharedStore(t, "mem://", clock.now)
	mortal := &mortalStore{Store: store}
	killed, s := newService(t, over(mortal, "a"), clock.set), newService(t, over(store, "b"), clock.set)
	killed.hold()
	killed.accepted(killed.do(killed.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
	answers := make(chan answer, 1)
	go func() { answers <- s.do(s.with(`{"code":"x"}`, idempotent, "k")) }()
	time.Sleep(100 * time.Millisecond)
	mortal.dead.Store(true)
	clock.advance(ledger.LeaseTime + ledger.ClockSkew + time.Second)
	a := <-answers
	require.Equal(t, 503, a.StatusCode)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Contains(t, string(a.body), "send the request again")
	s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
}

func TestResultsExpire(t *testing.T) {
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		t.Run(url[:4], func(t *testing.T) {
			clock := new(testClock)
			store := sharedStore(t, url, clock.now)
			s := newService(t, over(store, "a"), clock.set, func(c *Config) { c.ResultTTL = 2 * time.Hour })
			first := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
			failing := s.run
			s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) {
				return nil, http.ErrAbortHandler
			}
			require.Equal(t, 500, s.do(s.with(`{"code":"x"}`, idempotent, "failed")).StatusCode)
			require.NoError(t, s.server.Wait(t.Context()), "its lease is removed after it was answered")
			s.run = failing
			require.NoError(t, s.server.Wait(t.Context())) // its lease goes after its answer
			left := func() (n int) {
				for _, err := range store.List(t.Context(), storage.RecordKey("executions")) {
					require.NoError(t, err)
					n++
				}
				for _, err := range store.List(t.Context(), storage.RecordKey("idempotency")) {
					require.NoError(t, err)
					n++
				}
				return n
			}
			require.NoError(t, s.server.Wait(t.Context()), "a failure is told before it is forgotten")
			path := "/v1/executions/" + first.ID
			const records = 3 + 1 + 1 // lease, reply, result, claim; the claim of what failed

			// What failed is told before its other records are gone.
			require.Eventually(t, func() bool { return left() == records }, time.Minute, time.Millisecond)
			clock.advance(time.Hour)
			require.Equal(t, 200, s.get(path).StatusCode)
			require.NoError(t, s.server.book.Sweep(t.Context()))
			require.Equal(t, records, left())

			clock.advance(time.Hour + time.Second)
			require.Equal(t, 404, s.get(path).StatusCode)
			require.NoError(t, s.server.book.Sweep(t.Context()))
			require.Equal(t, records, left(), "for those who saw it while it was there")
			second := s.replied(s.do(s.with(`{"code":"another"}`, idempotent, "k")))
			require.NotEqual(t, first.ID, second.ID)

			clock.advance(2*time.Hour - time.Second)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := s.server.book.Sweep(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			require.Equal(t, 3+2, left(), "the second run's, and the chain of its key")
			require.Equal(t, second, s.replied(s.do(s.with(`{"code":"another"}`, idempotent, "k"))))

			clock.advance(4 * time.Hour)
			require.NoError(t, s.server.book.Sweep(t.Context()))
			require.Zero(t, left())
			require.NotEqual(t, second.ID, s.replied(s.do(s.with(`{"code":"another"}`, idempotent, "k"))).ID)
		})
	}
}

// TestChainThatIsBeingRemoved by a sweep that died is removed by who needs it.
func TestChainThatIsBeingRemoved(t *testing.T) {
	for _, left := range []int{0, 1, 2} {
		clock := new(testClock)
		store := sharedStore(t, "mem://", clock.now)
		s := newService(t, over(store, "a"), clock.set)
		chain := ledger.ChainOf("", "k")
		old := ledger.Claim{Execution: "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", Made: clock.now().Add(-100 * time.Hour)}
		for n := left; n < 2; n++ {
			require.NoError(t, store.PutNew(t.Context(), ledger.ClaimKey(chain, n), asJSON(t, old)))
		}
		require.NoError(t, store.PutNew(t.Context(), ledger.ClaimKey(chain, 2), asJSON(t, ledger.Claim{Closed: true, Made: clock.now()})))
		first := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
		require.Equal(t, first, s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k"))), "%d removed", left)
		s.only()
	}
}

func TestStoreThatDoesNotAnswer(t *testing.T) {
	mortal := &mortalStore{Store: sharedStore(t, "mem://", nil)}
	s := newService(t, over(mortal, "a"))
	mortal.dead.Store(true)
	for _, headers := range [][]string{{"Prefer", async}, {idempotent, "k"}} {
		a := s.do(s.with(`{"code":"x"}`, headers...))
		s.requireProblem(a, 503, "the store of executions does not answer")
		require.NotEmpty(t, a.Header.Get("Retry-After"))
	}
	for _, method := range []string{"GET", "DELETE"} {
		require.Equal(t, 503, s.call(method, "/v1/executions/run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9").StatusCode)
	}
	s.replied(s.postJSON(`{"code":"x"}`))
	require.Contains(t, s.logged.String(), errDead.Error())
}

// TestOneTakesOver of several services that find a run cut off.
func TestOneTakesOver(t *testing.T) {
	clock := new(testClock)
	store := sharedStore(t, "file://"+t.TempDir(), clock.now)
	mortal := &mortalStore{Store: store}
	killed := newService(t, over(mortal, "killed"), clock.set)
	killed.hold()
	cut := killed.accepted(killed.do(killed.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
	mortal.dead.Store(true)
	clock.advance(ledger.LeaseTime + ledger.ClockSkew + time.Second)
	services := []*service{newService(t, over(store, "a"), clock.set), newService(t, over(store, "b"), clock.set)}
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			s := services[i%2]
			ids[i] = s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))
		})
	}
	all.Wait()
	for _, s := range services {
		require.NoError(t, s.server.Wait(t.Context()))
	}
	require.Equal(t, 1, len(services[0].started())+len(services[1].started()))
	for _, id := range ids {
		require.Equal(t, ids[0], id)
		require.NotEqual(t, cut, id)
	}
}

// unsureStore makes the first claim and says that it did not.
type unsureStore struct {
	Store
	says error
	said atomic.Bool
}

func (u *unsureStore) PutNew(ctx context.Context, key string, content []byte) error {
	err := u.Store.PutNew(ctx, key, content)
	if strings.Contains(key, "/idempotency/") && !u.said.Swap(true) {
		return u.says
	}
	return err
}

// TestClaimThatIsMadeUnnoticed: a store's client that tries again meets its own claim;
// one that fails leaves a claim of nobody.
func TestClaimThatIsMadeUnnoticed(t *testing.T) {
	t.Run("and met", func(t *testing.T) {
		store := &unsureStore{Store: sharedStore(t, "mem://", nil), says: storage.ErrExists}
		s := newService(t, over(store, "a"))
		first := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
		require.Equal(t, first, s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k"))))
		s.only()
	})
	t.Run("and given up", func(t *testing.T) {
		store := &unsureStore{Store: sharedStore(t, "mem://", nil), says: errDead}
		s := newService(t, over(store, "a"))
		s.requireProblem(s.do(s.with(`{"code":"x"}`, idempotent, "k")), 503, "the store of executions does not answer")
		first := s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
		require.Equal(t, first, s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k"))))
		s.only()
	})
}

func asJSON(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}
