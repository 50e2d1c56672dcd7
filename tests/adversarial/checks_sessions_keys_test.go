package adversarial

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

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
