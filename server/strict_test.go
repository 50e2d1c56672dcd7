package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBodiesAreStrict: on every route with a body, null is as good as not given for each field
// that may be left out, in JSON, and a field that there is not is an error that names it.
func TestBodiesAreStrict(t *testing.T) {
	const file = `"files":[{"name":"a","text":"x","content":null,"url":null,"id":null}]`
	for _, c := range []struct {
		desc, path, body string
		optional         []string
		status           int
	}{
		{"a run", "/v1/execute", `"code":"x",` + file,
			[]string{"cells", "notebook", "entrypoint", "language", "env", "dependencies", "network", "timeout", "session", "stop_on_error"}, 200},
		{"a run without files", "/v1/execute", `"code":"x"`, []string{"files"}, 200},
		{"a question", "/run", `"input":"factorial",` + file, nil, 200},
		{"a question without files", "/foo", `"input":"factorial"`, []string{"files"}, 200},
		{"a tool call", "/v1/tools/call", `"call":{"code":"x","timeout":null,"language":null,"dependencies":null},` + file,
			[]string{"notation", "budget", "images", "session", "language", "env", "network", "timeout"}, 200},
		{"a tool call without files", "/v1/tools/call", `"call":{"code":"x"}`, []string{"files"}, 200},
		{"a session", "/v1/sessions", file, []string{"language", "ttl", "idle", "env", "dependencies", "network"}, 201},
		{"a session without files", "/v1/sessions", `"env":{}`, []string{"files"}, 201},
		{"a move", sessionsPath + "/%/move", `"from":"a","to":"b"`, []string{"overwrite"}, 200},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := askService(t, func(c *Config) { c.Sessions = newSessions(t) }, factorial)
			path := strings.Replace(c.path, "%", s.open(`{"files":[{"name":"a","text":"x"}]}`).ID, 1)
			body := "{" + c.body
			for _, name := range c.optional {
				body += fmt.Sprintf(",%q:null", name)
			}
			s.requireProblem(s.post(path, "application/json", body+`,"timeuot":1}`), 400, "timeuot: there is no such field")
			a := s.post(path, "application/json", body+"}")
			require.Equal(t, c.status, a.StatusCode, "%s", a.body)
		})
	}
}
