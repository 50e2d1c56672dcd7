package adversarial

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// shareChecks are of one key that takes all that it gets, and of another one beside it.
var shareChecks = map[string]Check{
	"slow_uploads_of_one_key":   slowUploadsOfOneKey,
	"costly_bodies_of_one_key":  costlyBodiesOfOneKey,
	"many_sessions_of_one_key":  manySessionsOfOneKey,
	"sessions_for_want_of_room": sessionsForWantOfRoom,
}

// betweenTwoKeys starts a service with two keys for do.
func betweenTwoKeys(ctx context.Context, t *Trial, name string, flags map[string]string, do func(s *Service, a, b *asker)) (out []Failure) {
	keys := []string{planted.canary.Secret(name + ", one key"), planted.canary.Secret(name + ", another key")}
	file := filepath.Join(planted.folder, name+"-keys")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		return []Failure{failed("%v", err)}
	}
	flags["api-keys-file"] = file
	s, stop, err := t.startOwn(ctx, planted.program, name, flags)
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	client := &Client{URL: s.URL, Seen: planted.canary.SearchAnswer}
	do(s, &asker{ctx, client, keys[0], &out}, &asker{ctx, client, keys[1], &out})
	return append(out, stop()...)
}

// uploadsOfOneKey are more than a service takes in at one time.
const uploadsOfOneKey = 40

// slowUploadsOfOneKey has one key begin uploads that do not end. Another key's file is kept.
func slowUploadsOfOneKey(ctx context.Context, t *Trial) []Failure {
	const contentType = "multipart/form-data; boundary=b"
	begin, file := "--b\r\nContent-Disposition: form-data; name=files; filename=a\r\n\r\n", "--b\r\nContent-Disposition: form-data; name=files; filename=a\r\n\r\nabc\r\n--b--\r\n"
	return betweenTwoKeys(ctx, t, "slow-uploads", map[string]string{}, func(s *Service, a, b *asker) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var begun, all sync.WaitGroup
		for range uploadsOfOneKey {
			body, send := io.Pipe()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/files", body)
			if err != nil {
				*a.out = append(*a.out, failed("%v", err))
				return
			}
			req.Header.Set("Content-Type", contentType)
			req.Header.Set("Authorization", "Bearer "+a.key)
			// A client waits for whoever reads its body, too.
			context.AfterFunc(ctx, func() { _ = send.Close() })
			begun.Add(1)
			all.Go(func() {
				if res, err := (&http.Client{Transport: direct()}).Do(req); err == nil {
					_ = res.Body.Close()
				}
			})
			go func() {
				_, _ = io.WriteString(send, begin+"x")
				begun.Done()
			}()
		}
		begun.Wait()
		for range 3 {
			b.ask("another key's file, beside slow ones", 201, Request{Method: http.MethodPost, Path: "/v1/files", Headers: map[string]string{"Content-Type": contentType}, Raw: &file})
		}
		cancel()
		all.Wait()
	})
}

const (
	// costlyBodies are sent at one moment, each as large as a service takes.
	costlyBodies = 12
	// costlyMemory is what they may cost in all: a few are in memory at one time.
	costlyMemory = 400 << 20
)

// costlyBodiesOfOneKey has one key send JSON of which every three bytes are a value. The
// service stays small, and another key's run is answered.
func costlyBodiesOfOneKey(ctx context.Context, t *Trial) []Failure {
	return betweenTwoKeys(ctx, t, "costly-bodies", map[string]string{}, func(s *Service, a, b *asker) {
		b.ask("a run before", 200, Request{Code: "print(1)"})
		before, err := status(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil {
			*a.out = append(*a.out, failed("%v", err))
			return
		}
		var of []Failure // a's own
		crowd := &asker{ctx, a.client, a.key, &of}
		var all sync.WaitGroup
		all.Go(func() {
			body := &Generate{Prefix: `{"code":"1","files":[{}`, Repeat: ",{}", Times: 8_000_000, Suffix: "]}"}
			crowd.ask("a body of values", 422, Request{AtOnce: costlyBodies, Method: http.MethodPost, Path: executePath, Headers: map[string]string{"Content-Type": "application/json"}, Generate: body})
		})
		b.ask("another key's run, beside them", 200, Request{Code: "print(1)"})
		all.Wait()
		*a.out = append(*a.out, of...)
		after, err := status(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil || after.peak-before.peak > costlyMemory {
			*a.out = append(*a.out, failed("the service's peak rose by %d MB: %v", (after.peak-before.peak)>>20, err))
		}
	})
}

// manySessionsOfOneKey has one key open as many sessions as it gets. There is room for
// another's.
func manySessionsOfOneKey(ctx context.Context, t *Trial) []Failure {
	return betweenTwoKeys(ctx, t, "many-sessions", map[string]string{"max-sessions": "4"}, func(_ *Service, a, b *asker) {
		open := Request{Method: http.MethodPost, Path: sessionsPath}
		for n := range 2 {
			defer a.close(a.ask(fmt.Sprintf("session %d of 4", n+1), 201, open))
		}
		a.ask("more than half of all", 429, open)
		defer b.close(b.ask("another key's", 201, open))
		b.ask("a second one, if one place is left", 429, open)
		a.ask("still more than half of all", 429, open)
	})
}

// sessionsForWantOfRoom has one key ask for sessions while sandboxes are short. Another
// key's only session stays.
func sessionsForWantOfRoom(ctx context.Context, t *Trial) []Failure {
	return betweenTwoKeys(ctx, t, "sessions-for-want-of-room", map[string]string{"max-sandboxes": "4", "max-running": "2"}, func(_ *Service, a, b *asker) {
		open := Request{Method: http.MethodPost, Path: sessionsPath}
		first := b.ask("a session", 201, open)
		defer b.close(first)
		own := first.Header.Get("Location")
		defer a.close(a.ask("another key's first", 201, open))
		defer a.close(a.ask("its second, which leaves one place", 201, open))
		a.ask("its third", 429, open)
		b.ask("the only one stays", 200, Request{Method: http.MethodGet, Path: own})
	})
}

// close ends a session that was opened by an answer: it would outlive its service.
func (a *asker) close(opened *Answer) {
	a.ask("the end of a session", 204, Request{Method: http.MethodDelete, Path: opened.Header.Get("Location")})
}
