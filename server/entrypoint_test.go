package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/server/native"
)

// shellLang is one whose commands are also those of sessions.
var shellLang = environments.Environment{Name: "bash", Language: "bash", Aliases: []string{"sh"}, DisplayName: "Bash", Kernel: environments.Kernel{Name: "bash"},
	Image: "bash:1", FileExtension: ".sh", Entrypoint: "bash {shell}", MediaTypes: []string{"text/x-sh"}}

func withShell(c *Config) { c.Environments = append(c.Environments, shellLang) }

// program is a request for one of files, all of which are empty.
func program(fields string, names ...string) string {
	var files []string
	for _, name := range names {
		raw, _ := json.Marshal(name)
		files = append(files, fmt.Sprintf(`{"name":%s,"content":""}`, raw))
	}
	return `{` + fields + `,"files":[` + strings.Join(files, ",") + `]}`
}

func TestEntrypoint(t *testing.T) {
	s := newService(t, withShell)
	for _, c := range []struct{ desc, body, environment, cell string }{
		{"python", program(`"entrypoint":"src/main.py"`, "src/main.py", "src/lib.py"), "jupyter", `run("/mnt/data/src/main.py", '/mnt/data/src/main.py')`},
		{"with its folder", program(`"entrypoint":"/mnt/data/main.py"`, "main.py"), "jupyter", `run("/mnt/data/main.py", '/mnt/data/main.py')`},
		{"by extension", program(`"entrypoint":"run.SH"`, "run.SH"), "bash", `bash '/mnt/data/run.SH'`},
		{"the language comes first", program(`"entrypoint":"run.sh","language":"py"`, "run.sh"), "jupyter", `run("/mnt/data/run.sh", '/mnt/data/run.sh')`},
		{"no extension", program(`"entrypoint":"sh"`, "sh"), "jupyter", `run("/mnt/data/sh", '/mnt/data/sh')`},
		{"what shells and kernels expand", program("\"entrypoint\":\"a 'b' \\\"c\\\" $d `e` %f !g {path} {shell} \u2028.py\"", "a 'b' \"c\" $d `e` %f !g {path} {shell} \u2028.py"), "jupyter",
			"run(\"/mnt/data/a 'b' \\\"c\\\" $d `e` %f !g {path} {shell} \\u2028.py\", '/mnt/data/a '\\''b'\\'' \"c\" $d `e` %f !g {path} {shell} \u2028.py')"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			before := len(s.started())
			s.t = t
			s.replied(s.postJSON(c.body))
			spec := s.started()[before]
			require.Equal(t, c.environment, spec.Environment.Name)
			require.Equal(t, []string{c.cell}, sources(t, spec))
		})
	}
}

func TestEntrypointOfAForm(t *testing.T) {
	s := newService(t)
	contentType, body := formBody(formPart{`name="entrypoint"`, "main.py"}, formPart{`name="files"; filename="main.py"`, "print(1)"})
	s.replied(s.post("/v1/execute", contentType, body))
	require.Equal(t, []string{`run("/mnt/data/main.py", '/mnt/data/main.py')`}, sources(t, s.only()))
}

func TestEntrypointsThatAreRefused(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		desc, body string
		status     int
		detail     string
	}{
		{"not sent", program(`"entrypoint":"main.py"`, "other.py"), 422, `entrypoint: "main.py" is not among the files`},
		{"no files", `{"entrypoint":"main.py"}`, 422, "entrypoint: "},
		{"a folder", program(`"entrypoint":"src"`, "src/main.py"), 422, "entrypoint: "},
		{"outside", program(`"entrypoint":"../main.py"`, "main.py"), 400, "entrypoint: leaves /mnt/data/"},
		{"a line break", program(`"entrypoint":"a\nb.py"`, "b.py"), 400, "entrypoint: has a control character"},
		{"a backslash", program(`"entrypoint":"a\\b.py"`, "b.py"), 400, "entrypoint: has a backslash"},
		{"empty", `{"entrypoint":""}`, 400, "entrypoint: is empty"},
		{"no string", `{"entrypoint":1}`, 400, "entrypoint: must be a string"},
		{"code too", program(`"code":"x","entrypoint":"main.py"`, "main.py"), 400, "there are code and entrypoint"},
		{"a language without", program(`"entrypoint":"main.R"`, "main.R"), 422, "entrypoint: r has none"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.postJSON(c.body), c.status, c.detail)
		})
	}
}

func TestEntrypointInASession(t *testing.T) {
	f := calculating(t)
	f.On(`run("/mnt/data/main.py", '/mnt/data/main.py')`, func(k *runnertest.Kernel) { k.Print("ran\n") })
	f.On("bash '/mnt/data/run.sh'", func(k *runnertest.Kernel) { k.Print("a command\n") })
	s := withSessions(t, f, withShell)
	id := s.open(`{}`).ID
	require.Equal(t, "ran\n", s.replied(s.inSession(id, `"entrypoint":"main.py"`)).Text, "it may be there already")
	require.Equal(t, "a command\n", s.replied(s.inSession(id, `"entrypoint":"run.sh"`)).Text)
	require.Equal(t, "a command\n", s.replied(s.inSession(id, `"entrypoint":"run.sh","language":"shell"`)).Text)
	s.requireProblem(s.inSession(id, `"entrypoint":"main.R"`), 422, `entrypoint: is "r", and this session runs python, and bash beside it`)
	require.Equal(t, "hi\n", s.replied(s.post("/v1/execute?session="+id, "text/x-sh", "echo hi")).Text)
}

// TestSessionOfBash: what is a command in others is its kernel's.
func TestSessionOfBash(t *testing.T) {
	f := calculating(t)
	s := withSessions(t, f, withShell)
	id := s.open(`{"language":"sh"}`).ID
	for _, language := range []string{"", `,"language":"bash"`, `,"language":"shell"`} {
		r := s.replied(s.inSession(id, `"code":"x = 1"`+language))
		require.Equal(t, "ok", r.Status)
		require.Nil(t, r.ExitCode)
	}
	s.requireProblem(s.inSession(id, `"code":"x","language":"python"`), 422, `is "python", and this session runs bash; open another`)
}

func TestErrorOfAnEntrypoint(t *testing.T) {
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		traceback := `"Traceback (most recent call last)","Cell In[1], line 5","File /mnt/data/main.py:7","E: m"`
		return executed(spec, runner.StatusError, `{"output_type":"error","ename":"E","evalue":"m","traceback":[`+traceback+`]}`), nil
	}
	r := s.replied(s.postJSON(program(`"entrypoint":"main.py"`, "main.py")))
	require.InDelta(t, 7, r.Error["line"], 0)
	require.Contains(t, r.Hint, "The code raised E in line 7 of main.py:")
}

// TestMediaTypesOfAllLanguages: a document that is served has those of every environment.
func TestMediaTypesOfAllLanguages(t *testing.T) {
	all, err := environments.Load("")
	require.NoError(t, err)
	s := newService(t, func(c *Config) { c.Environments = all })
	content := loadOpenAPI(t, s.get("/openapi.json").body).Paths.Value("/v1/execute").Post.RequestBody.Value.Content
	for _, e := range all {
		for i, mediaType := range e.MediaTypes {
			require.Contains(t, content, mediaType)
			before := len(s.started())
			s.replied(s.post("/v1/execute?timeout=5&images=url&language="+e.Language, mediaType, "x"))
			require.Equal(t, e.Name, s.started()[before].Environment.Name, i)
		}
	}
}

// TestUnavailable: a language whose image is not installed is known, and not offered.
func TestUnavailable(t *testing.T) {
	s := withSessions(t, calculating(t), func(c *Config) { c.Available = func(name string) bool { return name != "r" } })
	for _, a := range []answer{
		s.postJSON(`{"code":"x","language":"r"}`),
		s.post("/v1/execute", "text/x-r", "x"),
		s.post("/v1/sessions", "application/json", `{"language":"r"}`),
	} {
		s.requireProblem(a, 503, "the image of r is not installed: notebox image build r")
	}
	s.requireProblem(s.postJSON(`{"code":"x","language":"x"}`), 422, `"x" is not known; there are: python`)
	var list native.EnvironmentList
	require.NoError(t, json.Unmarshal(s.get("/v1/environments").body, &list))
	require.True(t, list.Environments[0].Available)
	require.False(t, list.Environments[1].Available)
}
