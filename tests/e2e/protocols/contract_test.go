package protocols

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	stdimage "image"
	_ "image/png"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

func TestTwoPlotsInOrder(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("../../../examples/requests/plots.py")
	require.NoError(t, err)
	status, raw := service.Post(t, shared.URL+"/v1/execute", "text/x-python", code)
	require.Equal(t, http.StatusOK, status, "%s", raw)
	var r service.Reply
	service.Decode(t, raw, &r)
	require.Equal(t, "ok", r.Status, r.Text)
	require.Len(t, r.Images, 2)
	for i, img := range r.Images {
		require.Equal(t, fmt.Sprintf("image_%d.png", i), img.Name)
		require.Equal(t, "image/png", img.MediaType)
		require.Len(t, img.Data, img.Bytes)
		config, _, err := stdimage.DecodeConfig(bytes.NewReader(img.Data))
		require.NoError(t, err)
		require.Equal(t, []int{config.Width, config.Height}, []int{img.Width, img.Height})
		status, served := service.Get(t, img.URL)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, img.Data, served, "the URL serves the same bytes")
		require.Contains(t, r.Text, img.URL)
	}
	require.Greater(t, r.Images[0].Width, r.Images[0].Height, "the sine comes first")
	require.Less(t, r.Images[1].Width, 400, "the circle comes second")
}

func TestMimeBundles(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"cells": []string{
		"from IPython.display import HTML, SVG, JSON, Latex, display\ndisplay(HTML('<b>bold</b>'))",
		"import pandas as pd\npd.DataFrame({'a': [1, 2]})",
		`SVG('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="5" height="5"/></svg>')`,
		"Latex(r'$\\frac{1}{2}$')",
		"JSON({'k': [1, None]})",
		"import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[1, 2]))",
	}, "timeout": 60})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Len(t, r.Outputs, 6)
	text := func(i int, media string) string {
		var s string
		require.Contains(t, r.Outputs[i].Data, media)
		require.NoError(t, json.Unmarshal(r.Outputs[i].Data[media], &s))
		return s
	}
	require.Equal(t, "<b>bold</b>", text(0, "text/html"))
	require.Equal(t, "display", r.Outputs[0].Type)
	require.Equal(t, "result", r.Outputs[1].Type)
	require.Contains(t, text(1, "text/html"), "<table")
	require.Contains(t, text(1, "text/plain"), "a\n0  1")
	require.Equal(t, "image/svg+xml", r.Images[0].MediaType)
	require.Equal(t, []int{20, 10}, []int{r.Images[0].Width, r.Images[0].Height})
	require.Equal(t, `$\frac{1}{2}$`, text(3, "text/latex"))
	require.JSONEq(t, `{"k": [1, null]}`, string(r.Outputs[4].Data["application/json"]))
	require.Contains(t, string(r.Outputs[5].Data["application/vnd.plotly.v1+json"]), `"bar"`)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{
		"code": `import os
data = open("in/data.csv").read()
os.makedirs("out/deep")
open("out/deep/result.csv", "w").write(data * 2)
open("in/changed.txt", "a").write(" and more")
held = open("held.txt", "w")
held.write("not closed by the code")
os.symlink("/etc/passwd", "link")
os.mkfifo("pipe")`,
		"files": []map[string]any{
			{"name": "in/data.csv", "content": []byte("a,b\n1,2\n")},
			{"name": "in/changed.txt", "content": []byte("some")},
		},
	})
	require.Equal(t, "ok", r.Status, r.Text)
	want := map[string]string{
		"/mnt/data/out/deep/result.csv": "a,b\n1,2\na,b\n1,2\n",
		"/mnt/data/in/changed.txt":      "some and more",
		"/mnt/data/held.txt":            "not closed by the code",
	}
	require.Len(t, r.Files, len(want), "untouched inputs do not come back: %v", r.Files)
	for _, f := range r.Files {
		content, ok := want[f.Path]
		require.True(t, ok, f.Path)
		sum := sha256.Sum256([]byte(content))
		require.Equal(t, hex.EncodeToString(sum[:]), f.SHA256)
		require.Equal(t, len(content), f.Bytes)
		require.Equal(t, path.Base(f.Path), path.Base(f.Name))
		require.WithinRange(t, f.ExpiresAt, time.Now(), time.Now().Add(25*time.Hour))
		status, served := service.Get(t, f.URL)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, content, string(served))
		require.Contains(t, r.Text, f.URL)
	}
	var skipped []string
	for _, s := range r.Skipped {
		require.NotEmpty(t, s.Reason)
		skipped = append(skipped, s.Path)
	}
	require.ElementsMatch(t, []string{"/mnt/data/link", "/mnt/data/pipe"}, skipped)

	signed := r.Files[0].URL
	i := strings.LastIndex(signed, "=") + 3
	for desc, url := range map[string]string{
		"another signature": signed[:i] + string('A'+(signed[i]-'A'+1)%26) + signed[i+1:],
		"another time":      strings.Replace(signed, "expires=1", "expires=2", 1),
		"another file":      strings.Replace(signed, "/files/runs", "/files/runs/..", 1),
		"no signature":      signed[:strings.Index(signed, "?")],
	} {
		status, _ := service.Get(t, url)
		require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, status, desc)
	}
}

func TestExpiredLink(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "expired", "--url-ttl", "2s", "--pool-size", "0")
	r := p.Execute(t, map[string]any{"code": "open('a.txt', 'w').write('x')"})
	require.Len(t, r.Files, 1)
	time.Sleep(time.Until(r.Files[0].ExpiresAt.Add(1100 * time.Millisecond)))
	status, _ := service.Get(t, r.Files[0].URL)
	require.Equal(t, http.StatusForbidden, status)
}

func TestCellsEnvironmentAndErrors(t *testing.T) {
	t.Parallel()
	request := map[string]any{
		"cells": []string{"import os, numpy\nos.environ['GREETING'], os.environ['OMP_NUM_THREADS']", "def f():\n    return 1 / 0\n\nf()", "'not run'"},
		"env":   map[string]string{"GREETING": "hello", "OMP_NUM_THREADS": "3"},
	}
	r := shared.Execute(t, request)
	require.Equal(t, "error", r.Status)
	require.Contains(t, r.Text, "('hello', '3')")
	require.NotContains(t, r.Text, "not run")
	require.Equal(t, service.Exception{Name: "ZeroDivisionError", Message: "division by zero", Traceback: r.Error.Traceback, Cell: 1, Line: 2}, *r.Error)
	require.NotContains(t, r.Error.Traceback, "\x1b")

	request["stop_on_error"] = false
	r = shared.Execute(t, request)
	require.Equal(t, "error", r.Status)
	require.Contains(t, r.Text, "not run")
}

// TestEnvironmentThatNoKernelStartsWith is the caller's fault, not ours.
func TestEnvironmentThatNoKernelStartsWith(t *testing.T) {
	t.Parallel()
	for _, env := range []string{`{"PYTHONHOME": "/nope"}`, `{"PYTHONUTF8": "5"}`, `{"HOME": "/proc"}`} {
		status, raw := service.Post(t, shared.URL+"/v1/execute", "application/json", []byte(`{"code": "1", "env": `+env+`}`))
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", env, raw)
		require.Contains(t, string(raw), `"env: `)
	}
}

// TestTenAtOnce runs ten that write the same file name.
func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			r := shared.Execute(t, map[string]any{"code": fmt.Sprintf("import os\nassert not os.path.exists('same.txt')\nopen('same.txt', 'w').write('run %d')", i)})
			if r.Status != "ok" || len(r.Files) != 1 {
				t.Errorf("run %d: %s %v: %s", i, r.Status, r.Files, r.Text)
				return
			}
			_, served := service.Get(t, r.Files[0].URL)
			assert.Equal(t, fmt.Sprintf("run %d", i), string(served))
		})
	}
	all.Wait()
}

// created returns how many containers a service has had made since then.
func created(t *testing.T, id string, since time.Time) int {
	t.Helper()
	out, err := exec.Command("docker", "events", "--filter", "label=notebox.service="+id, "--filter", "event=create",
		"--since", fmt.Sprint(since.Unix()-1), "--until", fmt.Sprint(time.Now().Unix()+1)).Output()
	require.NoError(t, err)
	return strings.Count(string(out), "\n")
}

// TestBadRequestsStartNothing sends what is wrong by itself.
func TestBadRequestsStartNothing(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "bad", "--pool-size", "0")
	since := time.Now()
	for _, c := range []struct {
		desc, contentType, body string
		status                  int
		names                   string
	}{
		{"empty", "application/json", ``, 400, ""},
		{"unknown field", "application/json", `{"code": "1", "cod": "2"}`, 400, "cod"},
		{"two of three", "application/json", `{"code": "1", "cells": ["2"]}`, 400, "cells"},
		{"none of three", "application/json", `{}`, 400, "code"},
		{"bad base64", "application/json", `{"code": "1", "files": [{"name": "a", "content": "%%%"}]}`, 400, "files[0].content"},
		{"a name that leaves", "application/json", `{"code": "1", "files": [{"name": "../x", "content": ""}]}`, 400, "files[0].name"},
		{"too large", "application/json", `{"code": "` + strings.Repeat("x", 30<<20) + `"}`, 413, ""},
		{"timeout below range", "application/json", `{"code": "1", "timeout": 0}`, 422, "timeout"},
		{"timeout above range", "application/json", `{"code": "1", "timeout": 1e12}`, 422, "timeout"},
		{"not supported", "application/json", `{"code": "1", "dependencies": ["-r /etc/passwd"]}`, 422, "dependencies"},
		{"no such type", "image/png", `x`, 415, ""},
	} {
		status, raw := service.Post(t, p.URL+"/v1/execute", c.contentType, []byte(c.body))
		require.Equal(t, c.status, status, "%s: %s", c.desc, raw)
		var problem struct {
			Type, Title, Detail, Field string
			Status                     int
		}
		service.Decode(t, raw, &problem)
		require.Equal(t, c.status, problem.Status, c.desc)
		require.Contains(t, problem.Detail, c.names, c.desc)
	}
	require.Zero(t, created(t, p.ID, since), "no sandbox was started")
}
