package adversarial

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	crowdRuns, crowdOpens, crowdUploads = 200, 60, 100
	crowdSessions                       = 4 // the case's --max-sessions
)

// crowdInSession sends runs, uploads and openings at one moment each: what is refused
// says when to come again, and what is taken is done, each once.
func crowdInSession(ctx context.Context, t *Trial) []Failure {
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		if out = t.step(ctx, s, Request{Code: "n = 0", Expect: Expect{Run: list[string]{"ok"}}}); len(out) > 0 {
			return out
		}
		run := s.within([]Request{{Code: "n += 1", AtOnce: crowdRuns}})[0]
		answers, err := t.Client.Send(ctx, &run, nil)
		taken, wrong := counted(answers, err, http.StatusOK)
		out = append(out, wrong...)
		count := fmt.Sprintf("%d\n", taken)
		out = append(out, t.step(ctx, s, Request{Code: "print(n)", Expect: Expect{Run: list[string]{"ok"}, Text: &Match{Equals: &count}}})...)

		var all sync.WaitGroup
		uploads := make([]*Answer, crowdUploads)
		errs := make([]error, crowdUploads)
		for i := range crowdUploads {
			all.Go(func() {
				content := strings.Repeat(fmt.Sprint(i%10), 10_000)
				uploads[i], errs[i] = s.Send(ctx, Request{Method: http.MethodPut, Path: fmt.Sprintf("%s/files/up/%d", inSession, i), Raw: &content})
			})
		}
		all.Wait()
		for i, a := range uploads {
			_, wrong := counted([]*Answer{a}, errs[i], http.StatusCreated)
			out = append(out, wrong...)
			if a == nil || a.Status != http.StatusCreated {
				continue
			}
			if have, err := get(ctx, s, fmt.Sprintf("up/%d", i)); err != nil || have != strings.Repeat(fmt.Sprint(i%10), 10_000) {
				out = append(out, failed("the upload %d has %d bytes, %v", i, len(have), err))
			}
		}

		answers, err = t.Client.Send(ctx, &Request{Path: sessionsPath, Fields: map[string]any{}, AtOnce: crowdOpens}, nil)
		opened, wrong := counted(answers, err, http.StatusCreated)
		out = append(out, wrong...)
		if opened != crowdSessions-1 { // s is one
			out = append(out, failed("%d of %d sessions were opened, not %d", opened, crowdOpens, crowdSessions-1))
		}
		for _, a := range answers {
			if a == nil || a.Status != http.StatusCreated {
				continue
			}
			other := &Session{strings.TrimPrefix(a.Header.Get("Location"), sessionsPath+"/"), t.Client}
			if err := other.Close(ctx); err != nil {
				out = append(out, failed("%v", err))
			}
		}
		return out
	})
}

// counted counts the answers that have a status. The others are refusals that say when
// to come again.
func counted(answers []*Answer, err error, status int) (n int, out []Failure) {
	if err != nil {
		return 0, []Failure{failed("%v", err)}
	}
	for _, a := range answers {
		switch {
		case a.Status == status && (a.Reply == nil || a.Reply.Status == "ok"):
			n++
		case a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "":
			out = append(out, failed("HTTP %d with Retry-After %q: %s", a.Status, a.Header.Get("Retry-After"), shown(string(a.Body))))
		}
	}
	return n, out
}

// slowUploads is less than the file operations that a session may have at one time.
const slowUploads = 4

// slowSessionUploads begins uploads that hardly go on. Others are quick beside them; the
// slow ones are dropped, and nothing of them is there.
func slowSessionUploads(ctx context.Context, t *Trial) []Failure {
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		var all sync.WaitGroup
		var mu sync.Mutex
		fail := func(failures ...Failure) {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, failures...)
		}
		for i := range slowUploads {
			all.Go(func() {
				conn, err := t.dial(patience)
				if err != nil {
					fail(failed("%v", err))
					return
				}
				defer conn.Close()
				fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", s.Path(fmt.Sprintf("/files/slow-%d", i)))
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = conn.Read(make([]byte, 1)) // a refusal, or the end
				}()
				for begun := time.Now(); time.Since(begun) < loaded(slowLimit, t.load.highest()); {
					_, _ = conn.Write([]byte("x"))
					select {
					case <-ended:
						return
					case <-time.After(slowStep):
					}
				}
				fail(failed("a slow upload was not dropped"))
			})
		}
		content, ran := "quick", "quick\n"
		for range slowUploads {
			fail(t.step(ctx, s,
				Request{Method: http.MethodPut, Path: inSession + "/files/quick", Raw: &content, Expect: Expect{Status: list[int]{200, 201}, Within: 10}},
				Request{Code: "print(open('/mnt/data/quick').read())", Expect: Expect{Run: list[string]{"ok"}, Text: &Match{Equals: &ran}, Within: 10}},
			)...)
		}
		all.Wait()
		nothing := &Match{Contains: list[string]{"quick"}, Lacks: list[string]{"slow", "notebox"}}
		return append(out, t.step(ctx, s,
			Request{Method: http.MethodGet, Path: inSession + "/files", Expect: Expect{Body: nothing}},
			Request{Code: waitForQuick, Timeout: 60, Expect: Expect{Run: list[string]{"ok"}, Text: nothing}},
		)...)
	})
}

// waitForQuick waits until what is left of the slow uploads has been removed.
const waitForQuick = `import os, time
deadline = time.monotonic() + 50
while os.listdir('/mnt/data') != ['quick'] and time.monotonic() < deadline:
    time.sleep(0.1)
print(os.listdir('/mnt/data'))`
