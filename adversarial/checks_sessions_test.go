package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

var sessionChecks = map[string]Check{
	"swapped_in_session":   swappedInSession,
	"attacked_children":    attackedChildren,
	"sessions_of_two_keys": sessionsOfTwoKeys,
	"crowd_in_session":     crowdInSession,
	"slow_session_uploads": slowSessionUploads,
	"closed_in_mid_run":    closedInMidRun,
	"session_token":        sessionToken,
	"two_sessions":         twoSessions,
	"flood_between_runs":   floodBetweenRuns,
}

// with opens a session for what do does, and closes it.
func (t *Trial) with(ctx context.Context, body map[string]any, do func(*Session) []Failure) []Failure {
	s, err := t.Open(ctx, body)
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	out := do(s)
	if err := s.Close(ctx); err != nil {
		out = append(out, failed("%v", err))
	}
	return out
}

// step sends some of the case's requests to a session.
func (t *Trial) step(ctx context.Context, s *Session, requests ...Request) []Failure {
	_, out := t.sendEach(ctx, s.within(requests))
	return out
}

// get reads a file of a session, which must be there.
func get(ctx context.Context, s *Session, name string) (string, error) {
	a, err := s.Send(ctx, Request{Method: http.MethodGet, Path: inSession + "/files/" + name})
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s: HTTP %d: %s", name, a.Status, shown(string(a.Body)))
	}
	if err != nil {
		return "", err
	}
	return string(a.Body), nil
}

const (
	// swapRounds are calls of each kind while folders are swapped for links: with three
	// processes that do nothing else, some call meets each state in a few tries.
	swapRounds = 25
	mine       = "mine" // what every file in /mnt/data holds, and none outside
)

// swappedInSession calls every file operation, and has files collected, while a
// process of the session swaps a folder and a file for links that lead out.
func swappedInSession(ctx context.Context, t *Trial) []Failure {
	requests := t.Attempt.Requests
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		if out = t.step(ctx, s, requests[0]); len(out) > 0 {
			return out
		}
		content := mine
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, r := range []Request{
			{Method: http.MethodGet, Path: inSession + "/files/d/passwd"},
			{Method: http.MethodGet, Path: inSession + "/files/l/passwd"},
			{Method: http.MethodGet, Path: inSession + "/files/from"},
			{Method: http.MethodGet, Path: inSession + "/files?path=d"},
			{Method: http.MethodGet, Path: inSession + "/files?recursive=true"},
			{Method: http.MethodPut, Path: inSession + "/files/d/new", Raw: &content},
			{Method: http.MethodPut, Path: inSession + "/files/d/f", Raw: &content},
			{Method: http.MethodPost, Path: inSession + "/move", Fields: map[string]any{"from": "d/f", "to": "l/f", "overwrite": true}},
			{Method: http.MethodDelete, Path: inSession + "/files/d/f"},
			{Method: http.MethodDelete, Path: inSession + "/files/l/new"},
			{Code: "0"},
		} {
			all.Go(func() {
				for range swapRounds {
					a, err := s.Send(ctx, r)
					wrong := ""
					switch {
					case err != nil:
						wrong = err.Error()
					case a.Status >= 500 && a.Status != http.StatusServiceUnavailable:
						wrong = fmt.Sprintf("HTTP %d: %s", a.Status, a.Body)
					case r.Method == http.MethodGet && !strings.Contains(r.Path, "?") && a.Status == http.StatusOK && string(a.Body) != mine:
						wrong = "it reads " + shown(string(a.Body))
					case strings.Contains(string(a.Body), "root:") || strings.Contains(string(a.Body), "/outside"):
						wrong = "it tells " + shown(string(a.Body))
					case a.Reply != nil:
						wrong = t.onlyMine(ctx, a)
					}
					if wrong != "" {
						mu.Lock()
						out = append(out, failed("%s %s: %s", r.Method, r.Path, wrong))
						mu.Unlock()
						return
					}
				}
			})
		}
		all.Wait()
		return append(out, t.step(ctx, s, requests[1:]...)...)
	})
}

// onlyMine looks through the files that a run returned.
func (t *Trial) onlyMine(ctx context.Context, a *Answer) string {
	if a.Reply.Status != "ok" {
		return "the run is " + a.Reply.Status + ": " + a.Reply.Text
	}
	for _, f := range a.Reply.Files {
		got, err := t.Client.Send(ctx, &Request{Method: http.MethodGet, Path: "{file:" + f.Path + "}"}, a)
		if err != nil {
			return err.Error()
		}
		if string(got[0].Body) != mine {
			return fmt.Sprintf("the collected %s is %s", f.Path, shown(string(got[0].Body)))
		}
	}
	return ""
}

// childCalls are file operations while the children that do them are attacked.
const childCalls = 20

// attackedChildren has a process of the session attack all that it sees come up, while
// files are collected, read, written and listed; the last are of a file that another
// process has a lease on.
func attackedChildren(ctx context.Context, t *Trial) []Failure {
	attack := t.Attempt.Requests[0]
	return t.with(ctx, map[string]any{"files": []any{map[string]any{"name": "in", "content": "aW4="}}}, func(s *Session) (out []Failure) {
		if out = t.step(ctx, s, attack); len(out) > 0 {
			return out
		}
		content := strings.Repeat("content", 100_000)
		for range childCalls {
			out = append(out, t.step(ctx, s,
				Request{Method: http.MethodPut, Path: inSession + "/files/in", Raw: &content, Expect: Expect{Status: list[int]{200, 201}}},
				Request{Method: http.MethodGet, Path: inSession + "/files/in", Expect: Expect{Body: &Match{Equals: &content}}},
				Request{Method: http.MethodGet, Path: inSession + "/files?recursive=true"},
			)...)
			if len(out) > 0 {
				return out
			}
		}
		ran := "ran\n"
		// The kernel that is started anew may be attacked: it is the user's.
		out = append(out, t.step(ctx, s, Request{Code: "open('/mnt/data/made', 'w').write('x'); print('ran')",
			Expect: Expect{Run: list[string]{"ok"}, Text: &Match{Contains: list[string]{ran}}}})...)
		reached, err := get(ctx, s, "reached")
		if err != nil || reached != "" {
			out = append(out, failed("the attacker reached %s, %v", shown(reached), err))
		}
		if seen, err := get(ctx, s, "seen"); err != nil || seen == "0" {
			out = append(out, failed("the attacker saw %q children, %v", seen, err))
		}
		out = append(out, t.step(ctx, s,
			Request{Method: http.MethodPost, Path: inSession + "/restart"},
			Request{Code: lease, Expect: Expect{Run: list[string]{"ok"}, Text: &Match{Contains: list[string]{"leased\n"}}}},
			Request{Method: http.MethodGet, Path: inSession + "/files/leased", Expect: Expect{Status: list[int]{200, 409}, Within: 30}},
			Request{Method: http.MethodPut, Path: inSession + "/files/leased", Raw: &content, Expect: Expect{Status: list[int]{200, 201, 409}, Within: 30}},
			Request{Code: "print('ran')", Expect: Expect{Run: list[string]{"ok"}, Text: &Match{Equals: &ran}, Within: 30}},
		)...)
		return out
	})
}

// lease has who opens the file wait for another process, which does not answer.
const lease = `import fcntl, os, signal
fd = os.open('/mnt/data/leased', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * 100)
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('leased')`

// sessionsOfTwoKeys has one key, and a guesser, ask for another one's session in every
// way. It is as if there were none, and the session goes on.
func sessionsOfTwoKeys(ctx context.Context, t *Trial) (out []Failure) {
	keys := []string{planted.canary.Secret("a session's API key"), planted.canary.Secret("the other API key")}
	file := filepath.Join(planted.folder, "session-keys")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		return []Failure{failed("%v", err)}
	}
	service, stop, err := t.startOwn(ctx, planted.program, "sessions-of-two-keys", map[string]string{"api-keys-file": file})
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	client := &Client{URL: service.URL, Seen: planted.canary.SearchAnswer}
	a, b := &asker{ctx, client, keys[0], &out}, &asker{ctx, client, keys[1], &out}
	nobody := &asker{ctx, client, "", &out}
	opened := a.ask("a session", 201, Request{Path: sessionsPath, Fields: map[string]any{"files": []any{map[string]any{"name": "in", "content": "aW4="}}}})
	id := strings.TrimPrefix(opened.Header.Get("Location"), sessionsPath+"/")
	if !strings.HasPrefix(id, "ses_") {
		return append(append(out, failed("its Location is %q", id)), stop()...)
	}
	tokens, err := service.tokens()
	if err != nil || len(tokens) == 0 {
		out = append(out, failed("no token of a session: %v", err))
	}
	for i, token := range tokens {
		planted.canary.Watch(fmt.Sprintf("a key's session, %d", i), token)
	}
	last := map[bool]string{true: "0", false: "1"}[strings.HasSuffix(id, "1")]
	guesses := []string{"ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", id[:len(id)-1] + last, strings.ToLower(id), id[:20], id + "0", "ses_%2e%2e", "*", "%00"}
	never := everySessionRoute(b, guesses[0])
	for _, guess := range append(guesses[1:], id) {
		for i, a := range everySessionRoute(b, guess) {
			if string(a.Body) != string(never[i].Body) {
				out = append(out, failed("%s is told from a session that never was: %s and %s", guess, a.Body, never[i].Body))
			}
		}
	}
	nobody.ask("nobody's", 401, Request{Method: http.MethodGet, Path: sessionsPath + "/" + id})
	nobody.ask("nobody's", 401, Request{Method: http.MethodDelete, Path: sessionsPath + "/" + id})
	if theirs := b.ask("another key's list", 200, Request{Method: http.MethodGet, Path: sessionsPath}); strings.Contains(string(theirs.Body), "ses_") {
		out = append(out, failed("another key's list has it: %s", theirs.Body))
	}
	got := a.ask("its own run", 200, Request{Code: "print(open('/mnt/data/in').read())", Fields: map[string]any{"session": id}})
	if got.Reply == nil || got.Reply.Text != "in\n" {
		out = append(out, failed("another key has reached it: %s", got.Body))
	}
	a.ask("its end", 204, Request{Method: http.MethodDelete, Path: sessionsPath + "/" + id})
	return append(out, stop()...)
}

// everySessionRoute calls each route of a session that is not the caller's.
func everySessionRoute(b *asker, id string) (answers []*Answer) {
	x := "x"
	for _, r := range []Request{
		{Method: http.MethodGet}, {Method: http.MethodDelete},
		{Method: http.MethodPost, Path: "/interrupt"}, {Method: http.MethodPost, Path: "/restart"},
		{Method: http.MethodGet, Path: "/files"}, {Method: http.MethodGet, Path: "/files/in"},
		{Method: http.MethodPut, Path: "/files/in", Raw: &x}, {Method: http.MethodDelete, Path: "/files/in"},
		{Method: http.MethodPost, Path: "/move", Fields: map[string]any{"from": "in", "to": "out"}},
	} {
		r.Path = sessionsPath + "/" + id + r.Path
		answers = append(answers, b.ask(r.Method+" "+r.Path, 404, r))
	}
	if !strings.Contains(id, "%") {
		answers = append(answers, b.ask("a run in "+id, 404, Request{Code: "print('there')", Fields: map[string]any{"session": id}}))
	}
	return answers
}

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

// closedInMidRun closes the session while its code runs.
func closedInMidRun(ctx context.Context, t *Trial) []Failure {
	run := t.Attempt.Requests[0]
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		ended := make(chan []Failure, 1)
		go func() { ended <- t.step(ctx, s, run) }()
		for deadline := time.Now().Add(patience); ; time.Sleep(settlePoll) {
			a, err := s.Send(ctx, Request{Method: http.MethodGet, Path: inSession})
			if err != nil || time.Now().After(deadline) {
				return append(out, failed("the run did not begin: %v", err))
			}
			var entry struct{ Status string }
			if json.Unmarshal(a.Body, &entry) == nil && entry.Status == "running" {
				break
			}
		}
		time.Sleep(time.Second) // most often, its line is printed by now
		if err := s.Close(ctx); err != nil {
			out = append(out, failed("%v", err))
		}
		return append(out, <-ended...)
	})
}

// sessionToken has the code of a session look for the secret by which the service
// finds its sandbox again.
func sessionToken(ctx context.Context, t *Trial) []Failure {
	requests := t.Attempt.Requests
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		tokens, err := t.Service.tokens()
		if err != nil || len(tokens) == 0 {
			return []Failure{failed("no token of a session: %v", err)}
		}
		for i, token := range tokens {
			planted.canary.Watch(fmt.Sprintf("a session, %d", i), token)
		}
		out = append(out, t.step(ctx, s, requests...)...)
		out = append(out, t.step(ctx, s, Request{Method: http.MethodPost, Path: inSession + "/restart"})...)
		out = append(out, t.step(ctx, s, requests...)...)
		return append(out, t.step(ctx, s, Request{Method: http.MethodGet, Path: inSession})...)
	})
}

// twoSessions leaves marks in two sessions, and looks for them from each.
func twoSessions(ctx context.Context, t *Trial) []Failure {
	mark, look := t.Attempt.Requests[0], t.Attempt.Requests[1]
	return t.with(ctx, map[string]any{}, func(a *Session) []Failure {
		return t.with(ctx, map[string]any{}, func(b *Session) (out []Failure) {
			for _, r := range []Request{mark, look} {
				out = append(out, t.step(ctx, a, r)...)
				out = append(out, t.step(ctx, b, r)...)
			}
			return out
		})
	})
}

const (
	// floodTime is how long nobody runs anything while a session's threads print.
	floodTime = 4 * time.Second
	// floodSlack is what a harness may then have more than before, bytes: messages that
	// wait, 1,000 of 10 kB at the most, a few times.
	floodSlack = 64 << 20
)

// floodBetweenRuns has a session print for a while between its runs, and looks at the
// memory of the harness. That of the service is in the invariant.
func floodBetweenRuns(ctx context.Context, t *Trial) []Failure {
	requests := t.Attempt.Requests
	before := t.largestHarness()
	return t.with(ctx, map[string]any{}, func(s *Session) (out []Failure) {
		out = t.step(ctx, s, requests[0])
		for deadline := time.Now().Add(floodTime); time.Now().Before(deadline); time.Sleep(settlePoll) {
			if now := t.largestHarness(); now > before+floodSlack {
				return append(out, failed("a harness has %d MB, %d MB before", now>>20, before>>20))
			}
		}
		return append(out, t.step(ctx, s, requests[1:]...)...)
	})
}

// largestHarness is the memory of the largest process that is no user's in the service's
// containers, bytes.
func (t *Trial) largestHarness() (most int64) {
	users := ofUsers()
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		raw, _ := os.ReadFile(folder + "/cgroup")
		if id := containerID.FindString(string(raw)); !t.Known.has(id) || users[folder] != "" {
			continue
		}
		if p, err := status(folder + "/status"); err == nil {
			most = max(most, p.resident)
		}
	}
	return most
}
