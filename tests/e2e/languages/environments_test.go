package languages

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/tests/e2e/service"
)

// environmentKinds are what an environment is asked for, each by its own case in
// testdata/cases.json of its folder.
var environmentKinds = []string{
	"print", "result", "error", "rich", "file", "stdin", "timeout", "memory", "stream", "state",
	"exit", "unicode", "flood", "entrypoint", "dependencies", "user", "localhost",
}

// also begins the names of what one environment alone has a case for.
const also = "also "

// environmentCase is one. What is not given is not looked at, but for the status.
type environmentCase struct {
	Cannot string // why the language has no such thing; all else is empty then

	Code         string
	Then         string // a second cell; of kind state: what the session runs next
	Files        map[string]string
	Entrypoint   string
	Dependencies []string
	Timeout      float64   // seconds; 0 is 30
	Interrupted  int       // so many times over, in a session: the kernel lives on
	Command      *struct { // of kind state: what a shell has to say in that session
		Line, Stdout string
		Seconds      float64 // that it may take
	}

	Status string  // "" is ok
	Stdout *string // all of it
	Stderr string  // a part
	Result *string // text/plain
	Error  *struct {
		Name, Message, Traceback string // but for the name: parts
		Line                     *int   // 0: it is not known
	}
	MIME  string
	File  *struct{ Name, Content string }
	Lines int // of stdout
}

// readCases is strict, and has every kind be there.
func readCases(t *testing.T, folder string) map[string]environmentCase {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../../environments", folder, "testdata/cases.json"))
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var cases map[string]environmentCase
	require.NoError(t, dec.Decode(&cases), folder)
	for _, kind := range environmentKinds {
		require.Contains(t, cases, kind, folder)
	}
	for kind, c := range cases {
		if !strings.HasPrefix(kind, also) {
			require.Contains(t, environmentKinds, kind, folder)
		}
		require.NotEqual(t, c.Cannot == "", c.Code == "" && c.Entrypoint == "", "%s: either it can or it cannot", kind)
	}
	return cases
}

// TestEnvironments has every environment that there is do what a code interpreter does.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			require.True(t, shared.Available(t)[e.Name], "make images builds it")
			cases := readCases(t, e.Name)
			kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(cases)), func(kind string) bool { return !strings.HasPrefix(kind, also) })
			for _, kind := range slices.Concat(environmentKinds, kinds) {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					c := cases[kind]
					if c.Cannot != "" {
						t.Logf("%s cannot: %s", e.Name, c.Cannot)
						environmentCannot(t, e, kind, c)
						return
					}
					c.check(t, c.run(t, e, kind))
				})
			}
		})
	}
}

// environmentCannot holds what a language is said not to have against what it is told to have.
func environmentCannot(t *testing.T, e environments.Environment, kind string, c environmentCase) {
	require.Greater(t, len(c.Cannot), 20, "a sentence")
	switch kind {
	case "dependencies":
		require.Nil(t, e.Dependencies)
	case "entrypoint":
		require.Empty(t, e.Entrypoint)
	default:
		require.Contains(t, []string{"result", "rich", "exit"}, kind, "everything else each language has")
	}
}

func (c environmentCase) run(t *testing.T, e environments.Environment, kind string) service.Reply {
	t.Helper()
	request := map[string]any{"language": e.Language, "timeout": 30}
	if c.Timeout > 0 {
		request["timeout"] = c.Timeout
	}
	switch {
	case c.Then != "":
		request["cells"] = []string{c.Code, c.Then}
	case c.Code != "":
		request["code"] = c.Code
	}
	if c.Entrypoint != "" {
		request["entrypoint"] = c.Entrypoint
	}
	if len(c.Dependencies) > 0 {
		request["dependencies"] = c.Dependencies
	}
	var files []map[string]any
	for name, content := range c.Files {
		files = append(files, map[string]any{"name": name, "content": []byte(content)})
	}
	if files != nil {
		request["files"] = files
	}
	if c.Interrupted > 0 {
		request["session"] = sessionIn(t, e.Language, map[string]any{})
		delete(request, "language")
		for range c.Interrupted - 1 {
			r := shared.Execute(t, request)
			c.check(t, r)
			require.False(t, r.Session.KernelRestarted)
		}
	}
	switch kind {
	case "state":
		return c.inSession(t, e)
	case "stream":
		return streamedApart(t, request)
	}
	asked := time.Now()
	r := shared.Execute(t, request)
	if kind == "timeout" {
		limit := time.Duration(c.Timeout * float64(time.Second))
		require.GreaterOrEqual(t, time.Duration(r.Usage.WallMS+10)*time.Millisecond, limit)
		require.Less(t, time.Since(asked), limit+startPatience)
	}
	return r
}

// startPatience is what a sandbox's start may add to a run's time.
const startPatience = 20 * time.Second

// restarts of a session: what the first kernel leaves behind, the third one finds as well.
const restarts = 2

// inSession runs one cell and then another in a session of the language, and again after
// each restart.
func (c environmentCase) inSession(t *testing.T, e environments.Environment) service.Reply {
	t.Helper()
	session := sessionIn(t, e.Language, map[string]any{})
	r := c.bothCells(t, session)
	c.runCommand(t, session)
	for range restarts {
		c.check(t, r)
		code, raw := service.Post(t, shared.URL+"/v1/sessions/"+session+"/restart", "application/json", nil)
		require.Equal(t, http.StatusOK, code, "%s", raw)
		r = c.bothCells(t, session)
	}
	return r
}

func (c environmentCase) bothCells(t *testing.T, session string) service.Reply {
	t.Helper()
	first := shared.Execute(t, map[string]any{"session": session, "code": c.Code})
	require.Equal(t, "ok", first.Status, first.Text)
	r := shared.Execute(t, map[string]any{"session": session, "code": c.Then})
	require.False(t, r.Session.KernelRestarted)
	return r
}

func (c environmentCase) runCommand(t *testing.T, session string) {
	t.Helper()
	if c.Command == nil {
		return
	}
	r := shared.Execute(t, map[string]any{"session": session, "language": "bash", "code": c.Command.Line})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Equal(t, c.Command.Stdout, r.Text)
	require.Less(t, float64(r.Usage.WallMS)/1000, c.Command.Seconds)
}

// sessionIn opens a session of a language on the shared service, which ends with the test.
// with are more fields of the request.
func sessionIn(t *testing.T, language string, with map[string]any) (id string) {
	t.Helper()
	with["language"], with["ttl"] = language, 300
	id = shared.OpenSessionWith(t, with)
	t.Cleanup(func() { service.Ask(t, http.MethodDelete, shared.URL+"/v1/sessions/"+id, "") })
	return id
}

// streamedApart has the pieces of an output arrive while the code runs, and not at its end.
func streamedApart(t *testing.T, request map[string]any) (r service.Reply) {
	t.Helper()
	e := shared.Stream(context.Background(), t, request)
	var first, last time.Time
	for {
		next, ok := e.Next()
		require.True(t, ok)
		switch next.Name {
		case "output":
			if first.IsZero() {
				first = next.At
			}
			last = next.At
		case "done":
			service.Decode(t, []byte(next.Data), &r)
			require.Greater(t, last.Sub(first), 800*time.Millisecond, "five prints, 0.3 s apart")
			return r
		}
	}
}

func (c environmentCase) check(t *testing.T, r service.Reply) {
	t.Helper()
	status := c.Status
	if status == "" {
		status = "ok"
	}
	require.Equal(t, status, r.Status, r.Text)
	stdout, stderr, result := "", "", ""
	var types []string
	for _, out := range r.Outputs {
		switch {
		case out.Type == "stream" && out.Name == "stdout":
			stdout += out.Text
		case out.Type == "stream":
			stderr += out.Text
		case out.Type == "result":
			if plain, ok := out.Data["text/plain"]; ok {
				require.NoError(t, json.Unmarshal(plain, &result))
			}
		}
		for mime := range out.Data {
			types = append(types, mime)
		}
	}
	if c.Stdout != nil {
		require.Equal(t, *c.Stdout, stdout)
	}
	require.Contains(t, stderr, c.Stderr)
	if c.Result != nil {
		require.Equal(t, *c.Result, result)
	}
	if c.MIME != "" {
		require.Contains(t, types, c.MIME)
	}
	if c.Lines > 0 {
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		require.Len(t, lines, c.Lines)
		require.Equal(t, "hi", lines[len(lines)-1])
		require.False(t, r.Truncated)
	}
	if c.Error != nil {
		require.NotNil(t, r.Error, r.Text)
		require.Equal(t, c.Error.Name, r.Error.Name)
		require.Contains(t, r.Error.Message, c.Error.Message)
		require.Contains(t, r.Error.Traceback, c.Error.Traceback)
		require.NotContains(t, r.Error.Traceback, "\x1b")
		require.Contains(t, r.Text, c.Error.Message, "a model reads it too")
		if c.Error.Line != nil {
			require.Equal(t, *c.Error.Line, r.Error.Line)
		}
	}
	if c.File != nil {
		i := slices.IndexFunc(r.Files, func(f service.File) bool { return f.Path == "/mnt/data/"+c.File.Name })
		require.GreaterOrEqual(t, i, 0, "%v", r.Files)
		code, content := service.Get(t, r.Files[i].URL)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, c.File.Content, string(content))
	}
}
