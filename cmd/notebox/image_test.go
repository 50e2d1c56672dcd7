package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// TestKeepOptions: a build gets where packages come from, and nothing that names a file of
// this host.
func TestKeepOptions(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[global]\nindex-url = https://u:p@pypi\nextra-index-url =\n    https://a\n    https://b\n[install]\nTrusted_Host: pypi\n",
		string(keepOptions([]byte("# ours\n[global]\nindex-url = https://u:p@pypi\nfind-links =\n    /opt/wheels\n    /srv\nextra-index-url =\n    https://a\n    https://b\ncert = /etc/ca.pem\n\n[install]\nTrusted_Host: pypi\n"), pipOption)))
	require.Equal(t, "registry=https://npm\n@us:registry=https://us\n//us/:_authToken=secret\nstrict-ssl=false\n",
		string(keepOptions([]byte("registry=https://npm\ncafile=/etc/ca.pem\n@us:registry=https://us\n//us/:_authToken=secret\n; a remark\ncache=/tmp\nstrict-ssl=false\nprefix=/usr\n"), npmOption)))
	require.Empty(t, keepOptions(nil, pipOption))
}

func TestImagesThatAreWanted(t *testing.T) {
	t.Parallel()
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, c := range []struct {
		desc  string
		build imageBuild
		names []string
		want  []string
		err   string
	}{
		{desc: "none is Python", want: []string{"jupyter"}},
		{desc: "names, languages and aliases", names: []string{"r", "python", "js", "bash"}, want: []string{"r", "jupyter", "javascript", "bash"}},
		{desc: "two that share one image", names: []string{"typescript", "javascript"}, want: []string{"javascript"}},
		{desc: "all", build: imageBuild{all: true}, want: []string{"jupyter", "bash", "go", "javascript", "r"}},
		{desc: "all, and one", build: imageBuild{all: true}, names: []string{"r"}, err: "name none"},
		{desc: "a tag for two", build: imageBuild{tag: "x:1"}, names: []string{"r", "go"}, err: "name one language"},
		{desc: "unknown", names: []string{"cobol"}, err: `no language "cobol"; there is: jupyter, bash`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			found, err := c.build.wanted(all, c.names)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var names []string
			for _, e := range found {
				names = append(names, e.Name)
			}
			require.Equal(t, c.want, names)
		})
	}
}

// TestImageReference: without a subcommand the program prints references, which scripts read.
func TestImageReference(t *testing.T) {
	t.Parallel()
	all, err := environments.Load("")
	require.NoError(t, err)
	out, _, code := notebox(t, nil, "image")
	require.Zero(t, code)
	require.Equal(t, all[0].Image+"\n", out)
	for _, name := range []string{"python", "Python", "jupyter"} {
		out, _, code = notebox(t, nil, "image", name)
		require.Zero(t, code)
		require.Equal(t, all[0].Image+"\n", out)
	}
	_, errs, code := notebox(t, nil, "image", "cobol")
	require.Equal(t, 1, code)
	require.Contains(t, errs, `no language "cobol"`)
	out, _, code = notebox(t, nil, "image", "r")
	require.Zero(t, code)
	require.Regexp(t, `^notebox/r:[0-9a-f]{16}\n$`, out)
	out, _, _ = notebox(t, nil, "image", "--list")
	require.Equal(t, "jupyter\nbash\ngo\njavascript\nr\n", out)
	_, errs, code = notebox(t, []string{"DOCKER_HOST=unix:///none.sock"}, "image", "build")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "notebox doctor says more")
	_, errs, code = notebox(t, []string{"NOTEBOX_ENVIRONMENTS_DIR=/none"}, "image", "list")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "/none")
}

// TestGoIsAskedElsewhere: a go.mod of the folder where the program is called may name another
// Go, which would be fetched and run.
func TestGoIsAskedElsewhere(t *testing.T) {
	bin, stranger := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\nprintf '{\"GOPROXY\": \"%s %s %s\"}' \"$PWD\" \"$GOTOOLCHAIN\" \"$GOWORK\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Chdir(stranger)
	require.Contains(t, string(goSettings(t.Context())), "GOPROXY='/ local off'\n")
}

// TestImagePrune: prune heeds flags wherever they stand, refuses other words, and keeps the image
// that serve would run Python in, wherever that is set.
func TestImagePrune(t *testing.T) {
	t.Parallel()
	const old, mine = "notebox/r:0000000000000001", "notebox/r:0000000000000002"
	var removed atomic.Int32
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		var answer any = []any{}
		switch {
		case r.Method == http.MethodDelete:
			removed.Add(1)
		case strings.HasSuffix(r.URL.Path, "/images/json"):
			answer = []any{map[string]any{"Id": "a", "RepoTags": []string{old}}, map[string]any{"Id": "b", "RepoTags": []string{mine}}}
		case strings.HasSuffix(r.URL.Path, mine+"/json"):
			answer = map[string]string{"Id": "b"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(daemon.Close)
	host := "DOCKER_HOST=tcp://" + daemon.Listener.Addr().String()
	for _, args := range [][]string{{"prune", "r", "--dry-run"}, {"prune", "--dry-run", "r"}, {"list", "r"}} {
		out, errs, code := notebox(t, []string{host}, append([]string{"image"}, args...)...)
		require.Equal(t, 2, code, args)
		require.Empty(t, out)
		require.Contains(t, errs, `unexpected argument "r"`)
	}
	out, errs, code := notebox(t, []string{host}, "image", "prune", "--dry-run")
	require.Zero(t, code, errs)
	require.ElementsMatch(t, []string{old, mine}, strings.Fields(out))
	for file, text := range map[string]string{".env": "NOTEBOX_IMAGE=" + mine, "notebox.conf": "image = " + mine + "\npids = few"} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text+"\n"), 0o600))
		environ := []string{host}
		if file != ".env" {
			environ = append(environ, "NOTEBOX_CONFIG="+file)
		}
		out, errs, code = noteboxIn(t, folder, environ, "image", "prune", "--dry-run")
		require.Zero(t, code, errs)
		require.Equal(t, old+"\n", out, file)
	}
	require.Zero(t, removed.Load())
}
