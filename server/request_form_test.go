package server

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// formPart is a part of a multipart body.
type formPart struct{ disposition, body string }

func formBody(parts ...formPart) (contentType, body string) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, p := range parts {
		part, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {"form-data; " + p.disposition}})
		_, _ = io.WriteString(part, p.body)
	}
	_ = w.Close()
	return w.FormDataContentType(), buf.String()
}

func TestForm(t *testing.T) {
	s := newService(t)
	var files map[string]string
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		var err error
		files, err = readInputs(spec)
		return executed(spec, runner.StatusOK), err
	}
	big := strings.Repeat("0123456789", 100_000)
	contentType, body := formBody(
		formPart{`name="files"; filename="a/b c.csv"`, "1,2\n"},
		formPart{`name="cells"`, `["x","y"]`},
		formPart{`name="files"; filename="/mnt/data/ü.bin"`, "\x00\xff"},
		formPart{`name="files"`, `[{"name":"inline.txt","content":"aGk="}]`},
		formPart{`name="files"; filename*=utf-8''%c3%a9.txt`, "e"},
		formPart{`name="files"; filename="empty"`, ""},
		formPart{`name="files"; filename="big"`, big},
		formPart{`name="timeout"`, "2.5"},
		formPart{`name="stop_on_error"`, "false"},
		formPart{`name="env"`, `{"A":"b"}`},
		formPart{`name="language"`, "python"},
		formPart{`name="network"`, "false"},
		formPart{`name="dependencies"`, "[]"},
	)
	s.replied(s.post("/v1/execute?images=url", contentType, body))
	spec := s.only()
	require.Equal(t, []string{"x", "y"}, sources(t, spec))
	require.Equal(t, 2.5, spec.Limits.Timeout.Seconds())
	require.False(t, spec.StopOnError)
	require.Equal(t, map[string]string{"A": "b"}, spec.Env)
	require.Equal(t, map[string]string{
		"a/b c.csv": "1,2\n", "ü.bin": "\x00\xff", "é.txt": "e", "empty": "", "big": big, "inline.txt": "hi",
	}, files)
	s.requireNoFiles()
}

func TestFormWithCodeFromAFile(t *testing.T) {
	s := newService(t)
	code := strings.Repeat("# padding beyond what is kept in memory\n", 3000) + "\x00"
	contentType, body := formBody(formPart{`name="code"; filename="script.py"`, code})
	s.replied(s.post("/v1/execute", contentType, body))
	require.Equal(t, []string{code}, sources(t, s.only()))
}

func TestBadForms(t *testing.T) {
	s := newService(t, func(c *Config) { c.MaxBody = 100_000 })
	code := formPart{`name="code"`, "x"}
	for _, c := range []struct {
		desc   string
		parts  []formPart
		status int
		detail string
	}{
		{"unknown part", []formPart{code, {`name="fiels"; filename="a"`, ""}}, 400, "fiels: there is no such field"},
		{"part without a name", []formPart{{`filename="a"`, ""}}, 400, "no name"},
		{"doubled part", []formPart{code, code}, 400, "code: is there more than once"},
		{"code and cells", []formPart{code, {`name="cells"`, `["x"]`}}, 400, "exactly one of"},
		{"no code", []formPart{{`name="files"; filename="a"`, ""}}, 400, "exactly one of"},
		{"cells that are no list", []formPart{{`name="cells"`, `{}`}}, 400, "cells: must be a list"},
		{"cells that are no JSON", []formPart{{`name="cells"`, `print(1)`}}, 400, "cells: is not valid JSON"},
		{"lone surrogate", []formPart{{`name="cells"`, `["\ud800"]`}}, 400, "cells[0]: is not valid UTF-8, or has a lone surrogate"},
		{"notebook that is none", []formPart{{`name="notebook"`, `{}`}}, 400, "notebook: "},
		{"code that is not UTF-8", []formPart{{`name="code"`, "\xff"}}, 400, "code: is not valid UTF-8"},
		{"NaN", []formPart{code, {`name="timeout"`, "NaN"}}, 422, "timeout: "},
		{"infinite", []formPart{code, {`name="timeout"`, "inf"}}, 422, "timeout: "},
		{"-1", []formPart{code, {`name="timeout"`, "-1"}}, 422, "timeout: "},
		{"no number", []formPart{code, {`name="timeout"`, "5s"}}, 400, "timeout: "},
		{"session", []formPart{code, {`name="session"`, "s"}}, 403, "session: this service's operator allows no sessions"},
		{"network", []formPart{code, {`name="network"`, "true"}}, 403, "network: "},
		{"dependencies", []formPart{code, {`name="dependencies"`, `["x"]`}}, 422, "dependencies: "},
		{"dependencies that are no JSON", []formPart{code, {`name="dependencies"`, `numpy`}}, 400, "dependencies"},
		{"empty URL", []formPart{code, {`name="files"`, `[{"name":"a","url":""}]`}}, 422, "files[0].url: is empty"},
		{"name that leaves", []formPart{code, {`name="files"; filename="a/../../x"`, ""}}, 400, "files[0].name: leaves /mnt/data/"},
		{"empty name", []formPart{code, {`name="files"; filename=""`, ""}}, 400, "files[0].name: is missing or empty"},
		{"NUL in a name", []formPart{code, {"name=\"files\"; filename*=utf-8''a%00b", ""}}, 400, "files[0].name: has a control"},
		{"name that is not UTF-8", []formPart{code, {"name=\"files\"; filename=\"\xff\"", ""}}, 400, "files[0].name: is not UTF-8"},
		{"backslash", []formPart{code, {`name="files"; filename*=utf-8''a%5Cb`, ""}}, 400, "files[0].name: has a backslash"},
		{"duplicate", []formPart{code, {`name="files"; filename="a"`, ""}, {`name="files"; filename="a"`, ""}}, 400, "files[1].name: "},
		{"duplicate in the JSON", []formPart{code, {`name="files"; filename="a"`, ""}, {`name="files"`, `[{"name":"a","content":""}]`}}, 400, "files[1].name: "},
		{"text too large", []formPart{{`name="code"`, strings.Repeat("x", 100_001)}}, 413, "code: the text parts are larger than 100000 bytes"},
		{"texts too large together", []formPart{{`name="code"`, strings.Repeat("x", 99_000)}, {`name="env"`, strings.Repeat("x", 2000)}}, 413, "env: "},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			contentType, body := formBody(c.parts...)
			s.requireProblem(s.post("/v1/execute", contentType, body), c.status, c.detail)
		})
	}
	whole, body := formBody(code, formPart{`name="files"; filename="a"`, "content"})
	for _, c := range []struct{ desc, contentType, body, detail string }{
		{"empty", whole, "", "the body is "},
		{"no boundary", "multipart/form-data", body, "boundary"},
		{"other boundary", "multipart/form-data; boundary=other", body, "not well-formed"},
		{"cut off", whole, body[:len(body)-20], "not well-formed"},
		{"cut off in a header", whole, body[:90], "not well-formed"},
		{"cut off after a header", whole, body[:strings.Index(body, "\r\n\r\n")], "not well-formed"},
		{"cut off before the closing boundary", whole, body[:strings.LastIndex(body, "\r\n--")], "not well-formed"},
		{"no part", "multipart/form-data; boundary=b", "--b--\r\n", "the form is empty"},
		{"encoded part", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=code\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--\r\n", "Content-Transfer-Encoding"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.post("/v1/execute", c.contentType, c.body), 400, c.detail)
		})
	}
}

func TestFormByCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	require.NoError(t, err, "curl is what people send forms with")
	dir := t.TempDir()
	local := filepath.Join(dir, "local.csv")
	require.NoError(t, os.WriteFile(local, []byte("1,2\n"), 0o600))
	s := newService(t)
	received := make(chan map[string]string, 1)
	s.mu.Lock() // another program's request is ordered by nothing else
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		files, err := readInputs(spec)
		received <- files
		return executed(spec, runner.StatusOK), err
	}
	s.mu.Unlock()
	out, err := exec.Command(curl, "--silent", "--fail-with-body", "--noproxy", "*",
		"-F", "code=print(1)", "-F", "timeout=3",
		"-F", "files=@"+local, "-F", "files=@"+local+";filename=a/b c.csv", "-F", `files=@`+local+`;filename="quo\"te.csv"`,
		s.url+"/v1/execute").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{"print(1)"}, sources(t, s.only()))
	files := <-received
	require.Len(t, files, 3)
	require.Equal(t, "1,2\n", files["a/b c.csv"])
	require.Contains(t, files, "local.csv")
}
