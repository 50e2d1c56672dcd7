package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/server/dify"
	"notebox/tests/e2e/service"
)

// difyAgent calls a service as Dify does, and holds each request and answer against the
// document that the service gave it.
type difyAgent struct {
	t   *testing.T
	url string
	key string // "" if there are none
	doc *openapi3.T
}

func newDifyAgent(t *testing.T, url, key string) *difyAgent {
	t.Helper()
	status, raw := service.Get(t, url+"/dify/openapi.json")
	require.Equal(t, http.StatusOK, status)
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	require.Equal(t, url, doc.Servers[0].URL)
	return &difyAgent{t, url, key, doc}
}

// operation is a call of the document, by its operationId.
func (d *difyAgent) operation(id string) (path string, item *openapi3.PathItem) {
	d.t.Helper()
	for path, item := range d.doc.Paths.Map() {
		if item.Post != nil && item.Post.OperationID == id {
			return path, item
		}
	}
	require.Fail(d.t, "there is no such operation", id)
	return "", nil
}

func (d *difyAgent) post(name string, fields map[string]string) (int, []byte) {
	d.t.Helper()
	path, item := d.operation(name)
	body, err := json.Marshal(fields)
	require.NoError(d.t, err)
	request := func() *http.Request {
		r, err := http.NewRequest(http.MethodPost, d.doc.Servers[0].URL+path, bytes.NewReader(body))
		require.NoError(d.t, err)
		r.Header.Set("Content-Type", "application/json")
		if d.key != "" {
			r.Header.Set("X-API-Key", d.key)
		}
		return r
	}
	res, err := http.DefaultClient.Do(request())
	require.NoError(d.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	input := &openapi3filter.RequestValidationInput{
		Request: request(),
		Route:   &routers.Route{Spec: d.doc, Path: path, PathItem: item, Method: http.MethodPost, Operation: item.Post},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	require.NoError(d.t, openapi3filter.ValidateRequest(context.Background(), input))
	require.NoError(d.t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(raw)), Options: input.Options,
	}), "%s: %s", name, raw)
	return res.StatusCode, raw
}

// difyReply is every field of every answer.
type difyReply struct {
	SandboxID   string `json:"sandbox_id"`
	Status      string
	Output      string
	Images      []struct{ URL, Name string }
	Files       []struct{ URL, Path string }
	ExitCode    *int `json:"exit_code"`
	Error       *struct{ Status, Name, Message, Hint string }
	RemotePath  string `json:"remote_path"`
	Filename    string
	DownloadURL string `json:"download_url"`
}

// call is one that succeeds.
func (d *difyAgent) call(name string, pairs ...string) difyReply {
	d.t.Helper()
	status, raw := d.post(name, fieldsOf(pairs))
	require.Equal(d.t, http.StatusOK, status, "%s: %s", name, raw)
	var r difyReply
	require.NoError(d.t, json.Unmarshal(raw, &r), "%s", raw)
	return r
}

// missing is a call that finds no sandbox.
func (d *difyAgent) missing(name string, pairs ...string) {
	d.t.Helper()
	status, raw := d.post(name, fieldsOf(pairs))
	require.Equal(d.t, http.StatusNotFound, status, "%s: %s", name, raw)
	require.Contains(d.t, string(raw), `{"detail":"`)
}

func fieldsOf(pairs []string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// difyService starts a service that may fetch from loopback.
func difyService(t *testing.T, flags ...string) *service.Service {
	t.Helper()
	return service.Start(t, strings.ToLower(t.Name()), append([]string{"--pool-size", "0", "--fetch-allow", "127.0.0.1"}, flags...)...)
}

// TestDifyWorkflow acts what a Dify agent does with a user's CSV file.
func TestDifyWorkflow(t *testing.T) {
	t.Parallel()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="sales.csv"`)
		fmt.Fprint(w, "fruit,amount\npears,3\nplums,4\n")
	}))
	defer files.Close()
	d := newDifyAgent(t, difyService(t).URL, "")

	id := d.call("create_sandbox", "conversation_id", "c-1").SandboxID
	require.Equal(t, id, d.call("create_sandbox", "conversation_id", "c-1").SandboxID)
	require.Equal(t, "running", d.call("get_sandbox_info", "sandbox_id", id).Status)
	uploaded := d.call("upload_file", "sandbox_id", id, "file_url", files.URL+"/file-preview?sign=x", "remote_filename", "")
	require.Equal(t, "/mnt/data/sales.csv", uploaded.RemotePath)

	loaded := d.call("run_code", "sandbox_id", id, "code", "import pandas as pd\nframe = pd.read_csv('/workspace/sales.csv')\nlen(frame)")
	require.Nil(t, loaded.Error, loaded.Output)
	require.Equal(t, "2\n", loaded.Output)
	summed := d.call("run_code", "sandbox_id", id, "code", "print('total', frame.amount.sum())", "language", "py")
	require.Equal(t, "total 7\n", summed.Output, "the frame is kept")

	listed := d.call("execute_command", "sandbox_id", id, "command", "ls -la")
	require.Contains(t, listed.Output, "sales.csv")
	require.NotNil(t, listed.ExitCode)
	require.Zero(t, *listed.ExitCode)
	failed := d.call("execute_command", "sandbox_id", id, "command", "echo out; echo err >&2; exit 3")
	require.Contains(t, failed.Output, "out")
	require.Contains(t, failed.Output, "err")
	require.Equal(t, 3, *failed.ExitCode)

	plotted := d.call("run_code", "sandbox_id", id, "code", "import matplotlib.pyplot as plt\nframe.plot.bar(x='fruit')\nplt.show()\nframe.to_csv('out.csv', index=False)")
	require.Nil(t, plotted.Error, plotted.Output)
	require.Len(t, plotted.Images, 1)
	status, picture := service.Get(t, plotted.Images[0].URL)
	require.Equal(t, http.StatusOK, status)
	require.True(t, bytes.HasPrefix(picture, []byte("\x89PNG")))
	require.Contains(t, plotted.Output, plotted.Images[0].URL)
	require.Len(t, plotted.Files, 1)
	require.Equal(t, "/mnt/data/out.csv", plotted.Files[0].Path)

	raised := d.call("run_code", "sandbox_id", id, "code", "print('before')\nframe['missing']")
	require.Contains(t, raised.Output, "before\n")
	require.Contains(t, raised.Output, "KeyError: 'missing'")
	require.Equal(t, "KeyError", raised.Error.Name)

	require.Equal(t, "notes/a.txt", d.call("write_file", "sandbox_id", id, "content", "höhe\n", "remote_path", "notes/a.txt").RemotePath)
	require.Equal(t, "höhe\n", d.call("execute_command", "sandbox_id", id, "command", "cat /mnt/data/notes/a.txt").Output)
	for _, name := range []string{"out.csv", "/mnt/data/out.csv", "/workspace/out.csv"} {
		link := d.call("download_file", "sandbox_id", id, "remote_path", name)
		require.Equal(t, "out.csv", link.Filename)
		status, content := service.Get(t, link.DownloadURL)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "fruit,amount\npears,3\nplums,4\n", string(content))
		plain, _, _ := strings.Cut(link.DownloadURL, "?")
		status, _ = service.Get(t, plain)
		require.Equal(t, http.StatusForbidden, status, "the signature is what opens it")
	}

	require.Equal(t, "stopped", d.call("stop_sandbox", "sandbox_id", id).Status)
	d.missing("get_sandbox_info", "sandbox_id", id)
	d.missing("run_code", "sandbox_id", id, "code", "1")
	d.missing("execute_command", "sandbox_id", id, "command", "ls -la")
	d.missing("write_file", "sandbox_id", id, "content", "x", "remote_path", "x")
	d.missing("upload_file", "sandbox_id", id, "file_url", files.URL, "remote_filename", "x")
	d.missing("download_file", "sandbox_id", id, "remote_path", "out.csv")
	require.Equal(t, "not_found", d.call("stop_sandbox", "sandbox_id", id).Status)
}

// TestDifyExamples sends each operation's example to the real service.
func TestDifyExamples(t *testing.T) {
	t.Parallel()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a\n1\n") }))
	defer files.Close()
	d := newDifyAgent(t, difyService(t).URL, "")
	id := ""
	for _, name := range []string{"create_sandbox", "get_sandbox_info", "run_code", "execute_command", "write_file", "upload_file", "download_file", "stop_sandbox"} {
		_, item := d.operation(name)
		var pairs []string
		for field, value := range item.Post.RequestBody.Value.Content["application/json"].Example.(map[string]any) {
			switch field {
			case "sandbox_id":
				value = id
			case "file_url":
				value = files.URL + "/sales.csv"
			}
			pairs = append(pairs, field, value.(string))
		}
		r := d.call(name, pairs...)
		switch name {
		case "create_sandbox":
			id = r.SandboxID
		case "run_code":
			require.Equal(t, "45\n", r.Output)
		}
	}
}

// TestDifyIsAnsweredInTime: code that prints and never ends is interrupted, and what it
// printed is in the answer. The sandbox lives on.
func TestDifyIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	url := difyService(t).URL
	for _, loop := range []struct{ call, field, source string }{
		{"run_code", "code", "import time\nopen('kept.txt', 'w').write('x')\nwhile True:\n    print('on', flush=True)\n    time.sleep(0.1)"},
		{"execute_command", "command", "echo x >kept.txt; while true; do echo on; sleep 0.1; done"},
	} {
		t.Run(loop.call, func(t *testing.T) {
			t.Parallel()
			d := newDifyAgent(t, url, "")
			id := d.call("create_sandbox").SandboxID
			began := time.Now()
			r := d.call(loop.call, "sandbox_id", id, loop.field, loop.source)
			require.Less(t, time.Since(began), dify.RunTime+60*time.Second)
			require.Contains(t, r.Output, "on\n", loop.call)
			require.Contains(t, r.Output, "55 seconds", loop.call)
			require.Len(t, r.Files, 1, "%s: what it wrote until then is there", loop.call)
			require.Equal(t, "timeout", r.Error.Status)
			require.Eventually(t, func() bool {
				r := d.call("run_code", "sandbox_id", id, "code", "print('still here')")
				return strings.Contains(r.Output, "still here\n")
			}, 2*time.Minute, time.Second)
			require.Equal(t, "stopped", d.call("stop_sandbox", "sandbox_id", id).Status)
		})
	}
}

// TestConversationsAreApart: two conversations of one key, and those of two keys, never see
// each other's files or variables.
func TestConversationsAreApart(t *testing.T) {
	t.Parallel()
	keys := t.TempDir() + "/keys"
	require.NoError(t, os.WriteFile(keys, []byte("key-one-of-the-test\nkey-two-of-the-test\n"), 0o600))
	p := difyService(t, "--api-keys-file", keys)
	one, two := newDifyAgent(t, p.URL, "key-one-of-the-test"), newDifyAgent(t, p.URL, "key-two-of-the-test")
	type conversation struct {
		agent    *difyAgent
		name, id string
	}
	all := []*conversation{{one, "a", ""}, {one, "b", ""}, {two, "a", ""}}
	ids := map[string]bool{}
	for i, c := range all {
		c.id = c.agent.call("create_sandbox", "conversation_id", c.name).SandboxID
		ids[c.id] = true
		c.agent.call("write_file", "sandbox_id", c.id, "content", fmt.Sprint("secret of ", i), "remote_path", fmt.Sprintf("of-%d.txt", i))
		r := c.agent.call("run_code", "sandbox_id", c.id, "code", fmt.Sprintf("secret_%d = %d", i, i))
		require.Nil(t, r.Error, r.Output)
	}
	require.Len(t, ids, len(all))
	for i, c := range all {
		require.Equal(t, c.id, c.agent.call("create_sandbox", "conversation_id", c.name).SandboxID, "the conversation goes on")
		r := c.agent.call("run_code", "sandbox_id", c.id, "code", "import os\nprint(sorted(n for n in globals() if n.startswith('secret')), os.listdir('/mnt/data'))")
		require.Equal(t, fmt.Sprintf("['secret_%d'] ['of-%d.txt']\n", i, i), r.Output)
		for _, other := range all {
			if other.agent != c.agent {
				other.agent.missing("run_code", "sandbox_id", c.id, "code", "1")
				other.agent.missing("download_file", "sandbox_id", c.id, "remote_path", fmt.Sprintf("of-%d.txt", i))
				require.Equal(t, "not_found", other.agent.call("stop_sandbox", "sandbox_id", c.id).Status)
			}
		}
	}
	for _, c := range all {
		require.Equal(t, "stopped", c.agent.call("stop_sandbox", "sandbox_id", c.id).Status)
	}
}
