package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
)

func TestBadJSON(t *testing.T) {
	s := newService(t)
	file := func(fields string) string { return `{"code":"x","files":[` + fields + `]}` }
	for _, c := range []struct {
		desc   string
		body   string
		status int
		detail string
	}{
		{"empty", ``, 400, "the body is empty"},
		{"blank", ` `, 400, "not valid JSON"},
		{"not JSON", `{"code":`, 400, "not valid JSON"},
		{"not an object", `["x"]`, 400, "must be an object"},
		{"trailing JSON", `{"code":"x"}{}`, 400, "not valid JSON"},
		{"trailing text", `{"code":"x"} x`, 400, "not valid JSON"},
		{"NaN", `{"code":"x","timeout":NaN}`, 400, "timeout"},
		{"unknown field", `{"code":"x","tiemout":3}`, 400, "tiemout: there is no such field"},
		{"field of another case", `{"Code":"x"}`, 400, "Code: there is no such field"},
		{"unknown field of a file", file(`{"name":"a","content":"","mode":1}`), 400, "files[0].mode: there is no such field"},
		{"doubled field", `{"code":"x","code":"y"}`, 400, "code: is there more than once"},
		{"doubled in the notebook", `{"notebook":{"nbformat":4,"cells":[],"cells":[]}}`, 400, "notebook.cells: is there more than once"},
		{"invalid UTF-8", "{\"code\":\"\xff\"}", 400, "code: is not valid UTF-8"},
		{"invalid UTF-8 in a name", "{\"code\":\"x\",\"env\":{\"\xff\":\"\"}}", 400, "UTF-8"},
		{"lone surrogate", `{"code":"\ud800"}`, 400, "code: is not valid UTF-8, or has a lone surrogate"},
		{"lone low surrogate", `{"cells":["x","\udc00"]}`, 400, "cells[1]: is not valid UTF-8"},
		{"lone surrogate in the notebook", `{"notebook":{"nbformat":4,"metadata":{"x":"\ud83dx"},"cells":[]}}`, 400, "surrogate"},
		{"nesting 10,000 deep", strings.Repeat("[", 10_000), 400, "nested deeper than"},
		{"nesting in the notebook", `{"notebook":{"nbformat":4,"cells":[],"metadata":{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}}`, 400, "nested deeper than"},
		{"code of another type", `{"code":["x"]}`, 400, "code: must be a string"},
		{"null in cells", `{"cells":["x",null]}`, 400, "cells[1]: must be a string"},
		{"cells of another type", `{"cells":"x"}`, 400, "cells: must be a list"},
		{"timeout of another type", `{"code":"x","timeout":"5"}`, 400, "timeout: must be a number"},
		{"network of another type", `{"code":"x","network":"yes"}`, 400, "network: must be true or false"},
		{"env of another type", `{"code":"x","env":[]}`, 400, "env: must be an object"},
		{"env value of another type", `{"code":"x","env":{"A":1}}`, 400, "env.A: must be a string"},
		{"files of another type", `{"code":"x","files":{}}`, 400, "files: must be a list"},
		{"file of another type", `{"code":"x","files":["a"]}`, 400, "files[0]: must be an object"},

		{"none of code, cells, notebook", `{}`, 400, "exactly one of code, cells, notebook and entrypoint"},
		{"nulls are none", `{"code":null,"cells":null,"notebook":null}`, 400, "exactly one of"},
		{"code and cells", `{"code":"x","cells":["x"]}`, 400, "exactly one of"},
		{"code and notebook", `{"code":"x","notebook":{}}`, 400, "there are code and notebook"},
		{"empty code", `{"code":""}`, 400, "code: is empty"},
		{"no cells", `{"cells":[]}`, 400, "cells: is empty"},
		{"too many cells", `{"cells":[` + strings.Repeat(`"",`, 10_000) + `""]}`, 422, "cells: "},

		{"notebook of another type", `{"notebook":7}`, 400, "notebook"},
		{"notebook without cells", `{"notebook":{"nbformat":4}}`, 400, "notebook: "},
		{"notebook of another version", `{"notebook":{"nbformat":2,"worksheets":[]}}`, 422, "notebook.nbformat: "},
		{"notebook with a bad cell", `{"notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":1}]}}`, 400, "notebook.cells[0].source: "},
		{"notebook of an unknown language", `{"notebook":{"nbformat":4,"metadata":{"kernelspec":{"name":"j","language":"julia"}},"cells":[{"cell_type":"code","source":""}]}}`, 422, "notebook.metadata.kernelspec.language: \"julia\" is not known; there are: python, r"},
		{"notebook of another language", `{"language":"r","notebook":{"nbformat":4,"metadata":{"kernelspec":{"name":"p","language":"python"}},"cells":[{"cell_type":"code","source":""}]}}`, 422, "language: "},

		{"session", `{"code":"x","session":"s_1"}`, 403, "session: this service's operator allows no sessions"},
		{"dependencies", `{"code":"x","dependencies":["--index-url=http://x"]}`, 422, "dependencies: are not supported"},
		{"network", `{"code":"x","network":true}`, 403, "network: this service's operator allows none"},
		{"language", `{"code":"x","language":"cobol"}`, 422, `language: "cobol" is not known; there are: python, r`},
		{"timeout 0", `{"code":"x","timeout":0}`, 422, "timeout: must be above 0 and at most 300 seconds"},
		{"timeout -1", `{"code":"x","timeout":-1}`, 422, "timeout: "},
		{"timeout 1e12", `{"code":"x","timeout":1e12}`, 422, "timeout: "},
		{"timeout 1e999", `{"code":"x","timeout":1e999}`, 422, "timeout: "},
		{"timeout 300.1", `{"code":"x","timeout":300.1}`, 422, "timeout: "},
		{"env name with =", `{"code":"x","env":{"A=B":"1"}}`, 422, `env.A=B: is not the name of a variable`},
		{"env name with a line break", `{"code":"x","env":{"A\nB":"1"}}`, 422, `env."A\nB": is not the name`},
		{"env name empty", `{"code":"x","env":{"":"1"}}`, 422, `env."": is not the name`},
		{"env value with NUL", `{"code":"x","env":{"A":"\u0000"}}`, 422, "env.A: has a NUL"},
		{"env too large", `{"code":"x","env":{"A":"` + strings.Repeat("x", 65536) + `"}}`, 422, "env: "},

		{"an unknown field of a file", file(`{"name":"a","text":"","encoding":"utf-8"}`), 400, "files[0].encoding: there is no such field"},
		{"content and text", file(`{"name":"a","content":"","text":""}`), 400, "files[0]: must have exactly one of"},
		{"text of another type", file(`{"name":"a","text":1}`), 400, "files[0].text: must be a string"},
		{"no content", file(`{"name":"a"}`), 400, "files[0]: must have exactly one of content, text, url and id"},
		{"content and url", file(`{"name":"a","content":"","url":"http://x/"}`), 400, "files[0]: must have exactly one of"},
		{"empty URL", file(`{"name":"b","content":""},{"name":"a","url":""}`), 422, "files[1].url: is empty"},
		{"no name", file(`{"content":""}`), 400, "files[0].name: is missing"},
		{"base64", file(`{"name":"a","content":"YQ=="},{"name":"b","content":"!!!!"}`), 400, "files[1].content: is not base64"},
		{"base64 without padding", file(`{"name":"a","content":"YQ"}`), 400, "files[0].content: is not base64"},
		{"base64 with stray bits", file(`{"name":"a","content":"YR=="}`), 400, "files[0].content: is not base64"},
		{"base64 of URLs", file(`{"name":"a","content":"_-8="}`), 400, "files[0].content: is not base64"},
		{"base64 with line breaks", file(`{"name":"a","content":"YQ=\n="}`), 400, "line breaks"},
		{"name that leaves", file(`{"name":"../x","content":""}`), 400, "files[0].name: leaves /mnt/data/"},
		{"absolute name", file(`{"name":"/etc/x","content":""}`), 400, "files[0].name: is not within /mnt/data/"},
		{"NUL in a name", file(`{"name":"a\u0000b","content":""}`), 400, "files[0].name: has a control character"},
		{"duplicate", file(`{"name":"a","content":""},{"name":"/mnt/data/a","content":""}`), 400, "files[1].name: another file has the same name"},
		{"file where a folder is", file(`{"name":"a/b","content":""},{"name":"a","content":""}`), 400, "files[1].name: another file has this name as its folder"},
		{"folder where a file is", file(`{"name":"a","content":""},{"name":"a/b/c","content":""}`), 400, "files[1].name: its folder is the name of another file"},
		{"too many files", file(strings.TrimSuffix(strings.Repeat(`{"name":"%","content":""},`, executor.MaxInputs+1), ",")), 422, "files: there are more than 1000"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			body := c.body
			for i := 0; strings.Contains(body, `"%"`); i++ {
				body = strings.Replace(body, `"%"`, fmt.Sprintf(`"%d"`, i), 1)
			}
			s.t = t
			s.requireProblem(s.postJSON(body), c.status, c.detail)
		})
	}
}

func TestBadRequestsOfOtherForms(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		desc, method, path, contentType, body string
		status                                int
		detail                                string
	}{
		{"no content type", "POST", "/v1/execute", "", "x", 415, "Content-Type: is missing"},
		{"notebook alone that is none", "POST", "/v1/execute", "application/x-ipynb+json", "[1]", 400, "notebook: is a list, want an object"},
		{"notebook alone that is broken", "POST", "/v1/execute", "application/x-ipynb+json", `{"nbformat":4,`, 400, "notebook: is not valid JSON"},
		{"notebook alone of broken UTF-8", "POST", "/v1/execute", "application/x-ipynb+json", "{\"nbformat\":4,\"x\":\"\xff\"}", 400, "notebook: is not valid JSON"},
		{"notebook alone that is null", "POST", "/v1/execute", "application/x-ipynb+json", "null", 400, "exactly one of"},
		{"notebook alone of another version", "POST", "/v1/execute", "application/x-ipynb+json", `{"nbformat":2}`, 422, "notebook.nbformat: is 2, want 4 or 3"},
		{"notebook alone, of nothing", "POST", "/v1/execute", "application/x-ipynb+json", "", 400, "the body is empty"},
		{"other content type", "POST", "/v1/execute", "application/xml", "x", 415, `"application/xml" is not supported; supported are application/json, multipart/form-data, application/x-ipynb+json, text/plain`},
		{"form of a page", "POST", "/v1/execute", "application/x-www-form-urlencoded", "code=x", 415, "Content-Type"},
		{"other charset", "POST", "/v1/execute", "text/plain; charset=latin1", "x", 415, "charset"},
		{"empty code", "POST", "/v1/execute", "text/x-python", "", 400, "the body is empty"},
		{"code that is not UTF-8", "POST", "/v1/execute", "text/plain", "\xff", 400, "code: is not valid UTF-8"},
		{"NaN in the query", "POST", "/v1/execute?timeout=NaN", "text/plain", "x", 422, "timeout: "},
		{"timeout in the query", "POST", "/v1/execute?timeout=1e12", "text/plain", "x", 422, "timeout: "},
		{"no number in the query", "POST", "/v1/execute?timeout=soon", "text/plain", "x", 400, "timeout: must be a number"},
		{"no boolean in the query", "POST", "/v1/execute?stop_on_error=maybe", "text/plain", "x", 400, "stop_on_error: "},
		{"unknown parameter", "POST", "/v1/execute?tiemout=3", "text/plain", "x", 400, `query: there is no parameter "tiemout"`},
		{"malformed query", "POST", "/v1/execute?timeout=%zz", "text/plain", "x", 400, "query: is malformed"},
		{"doubled parameter", "POST", "/v1/execute?timeout=3&timeout=4", "text/plain", "x", 400, "more than once"},
		{"parameter of another form", "POST", "/v1/execute?timeout=3", "application/json", `{"code":"x"}`, 400, `"timeout"`},
		{"images", "POST", "/v1/execute?images=no", "text/plain", "x", 422, "images: "},
		{"language and media type", "POST", "/v1/execute?language=r", "text/x-python", "x", 422, "language: "},
		{"wrong method", "GET", "/v1/execute", "", "", 405, "does not take this method"},
		{"wrong method of a file", "PUT", "/v1/files/x", "", "", 405, "method"},
		{"unknown address", "GET", "/v1/nothing", "", "", 404, "nothing at this address"},
		{"another address", "GET", "/v1", "", "", 404, "nothing at this address"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.do(s.request(c.method, c.path, c.contentType, strings.NewReader(c.body)))
			s.requireProblem(a, c.status, c.detail)
			if c.status == http.StatusMethodNotAllowed {
				require.NotEmpty(t, a.Header.Get("Allow"))
			}
		})
	}
}

func TestHeadersThatAreNotSupported(t *testing.T) {
	s := newService(t)
	for name, c := range map[string]struct {
		value, detail string
		status        int
	}{
		"Content-Encoding": {"gzip", "Content-Encoding", 415},
	} {
		req := s.request("POST", "/v1/execute", "application/json", strings.NewReader(`{"code":"x"}`))
		req.Header.Set(name, c.value)
		s.requireProblem(s.do(req), c.status, c.detail)
	}
	req := s.request("POST", "/v1/execute", "application/json", strings.NewReader(`{"code":"x"}`))
	req.Header["Content-Encoding"] = []string{"identity", "gzip"}
	s.requireProblem(s.do(req), 415, "Content-Encoding")
	req = s.request("POST", "/v1/execute", "application/json", strings.NewReader(`{"code":"x"}`))
	req.Header.Set("Content-Encoding", "identity")
	req.Header.Set("Accept", "image/png")
	s.replied(s.do(req))
}

func TestBodiesAreLimited(t *testing.T) {
	const maxBody, maxUpload = 50_000, 300_000
	s := newService(t, func(c *Config) { c.MaxBody, c.MaxUpload = maxBody, maxUpload })
	form, formStart := "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\n"
	for _, c := range []struct {
		desc, contentType, start string
		size                     int
	}{
		{"JSON", "application/json", `{"code":"`, maxBody},
		{"code", "text/x-python", ``, maxBody},
		{"form", form, formStart, maxUpload},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", c.desc, chunked), func(t *testing.T) {
				s.t = t
				var body io.Reader = strings.NewReader(c.start + strings.Repeat("x", c.size+1))
				if chunked {
					body = io.MultiReader(body) // of unknown length
				}
				a := s.do(s.request("POST", "/v1/execute", c.contentType, body))
				s.requireProblem(a, 413, fmt.Sprintf("the body is larger than %d bytes", c.size))
				if c.contentType == "text/x-python" && !chunked {
					a = s.post("/v1/execute?timeout=soon", c.contentType, strings.Repeat("x", c.size+1))
					s.requireProblem(a, 413, fmt.Sprintf("the body is larger than %d bytes", c.size))
				}
			})
		}
	}
	t.Run("as large as may be", func(t *testing.T) {
		s.t = t
		s.replied(s.post("/v1/execute", "text/plain", strings.Repeat("#", maxBody)))
	})
}

func TestInputsMustFitIntoTheirFolder(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Limits = runner.DefaultLimits()
		c.Limits.DataSize = 10
	})
	contentType, body := formBody(formPart{`name="code"`, "x"}, formPart{`name="files"; filename="a"`, "12345678901"})
	s.requireProblem(s.post("/v1/execute", contentType, body), 413, "files: together they are larger than /mnt/data, which holds 10 bytes")
}

func TestInputsHaveTheRoomOfTheirEnvironment(t *testing.T) {
	sessions := newSessions(t)
	s := withSessions(t, sessions, func(c *Config) {
		c.Limits = runner.DefaultLimits()
		c.Limits.DataSize = 10
		needs := rLang
		needs.Needs.DataSize = 22
		c.Environments = []environments.Environment{python, needs}
	})
	language, file := formPart{`name="language"`, "r"}, formPart{`name="files"; filename="a"`, "12345678901"}
	contentType, body := formBody(formPart{`name="code"`, "x"}, language, file)
	s.replied(s.post("/v1/execute", contentType, body))

	contentType, body = formBody(language, file)
	session := s.opened(s.post(sessionsPath, contentType, body))
	a := s.do(s.request("PUT", sessionsPath+"/"+session.ID+"/files/b", "", strings.NewReader("12345678901")))
	require.Equal(t, 201, a.StatusCode, "%s", a.body)
}

// FuzzRequest holds that no body makes a panic, a 5xx or a temporary file, and
// that code that is taken is taken exactly.
func FuzzRequest(f *testing.F) {
	contentType, body := formBody(formPart{`name="cells"`, `["x"]`}, formPart{`name="files"; filename="a/b"`, "\x00"})
	f.Add("application/json", `{"code":"print(1)","files":[{"name":"a","content":"YQ=="}],"env":{"A":"b"},"timeout":1e3}`)
	f.Add("application/json", `{"notebook":{"nbformat":4,"metadata":{},"cells":[{"cell_type":"code","source":["a"]}]}}`)
	f.Add("application/json", `{"cells":["\ud83d\ude00\u0000"]}`)
	f.Add("application/json", "{\"code\":\"\xff\"}")
	f.Add("text/plain", "print(1)")
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=code\r\n\r\n\r\n--b--")
	var last runner.Spec
	temp := f.TempDir()
	server := fuzzServer(f, temp, func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		last = spec
		return executed(spec, runner.StatusOK), nil
	})
	f.Fuzz(func(t *testing.T, contentType, body string) {
		req := httptest.NewRequest(http.MethodPost, "http://localhost/v1/execute", strings.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		last = runner.Spec{}
		server.Handler().ServeHTTP(w, req)
		require.Less(t, w.Code, 500, "%s", w.Body)
		entries, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, entries)
		if w.Code != 200 {
			require.Empty(t, last.ID)
			return
		}
		require.True(t, json.Valid(last.Notebook))
		require.True(t, utf8.Valid(last.Notebook))
		for _, in := range last.Inputs {
			requireSafeName(t, in.Path)
		}
		if strings.HasPrefix(contentType, "text/plain") {
			require.Equal(t, []string{body}, sources(t, last))
		}
	})
}
