package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"notebox/tests/starter"
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
	if before == 0 {
		return []Failure{failed("no harness is found")}
	}
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
// sandboxes, bytes.
func (t *Trial) largestHarness() (most int64) {
	users := ofUsers()
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		if !t.Known.has(starter.SandboxOf(folder)) || users[folder] != (userProcess{}) {
			continue
		}
		if p, err := status(folder + "/status"); err == nil {
			most = max(most, p.resident)
		}
	}
	return most
}
