package builder

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	control "github.com/moby/buildkit/api/services/control"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var apiVersion = regexp.MustCompile(`^/v[0-9.]+`)

// fakeDaemon answers calls as "GET /images/json" by a status and a value, which is JSON unless
// it is a string.
func fakeDaemon(t *testing.T, o Options, answer func(call string, r *http.Request) (int, any)) *Builder {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			return
		}
		status, v := answer(r.Method+" "+apiVersion.ReplaceAllString(r.URL.Path, ""), r)
		w.WriteHeader(status)
		if text, is := v.(string); is {
			_, _ = io.WriteString(w, text)
			return
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_HOST", "tcp://"+server.Listener.Addr().String())
	b, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func said(text string) map[string]string { return map[string]string{"message": text} }

// traced is a message of BuildKit's.
func traced(t *testing.T, status *control.StatusResponse) string {
	t.Helper()
	raw, err := status.MarshalVT()
	require.NoError(t, err)
	line, err := json.Marshal(map[string]any{"id": trace, "aux": raw})
	require.NoError(t, err)
	return string(line) + "\n"
}

// TestFollow: each step is shown once, when it starts; and what the steps said is in the error.
func TestFollow(t *testing.T) {
	t.Parallel()
	now := timestamppb.New(time.Unix(1, 0))
	first := &control.Vertex{Digest: "sha256:1", Name: "[2/3] RUN --mount=type=secret,id=ca set -eu", Started: now}
	stream := traced(t, &control.StatusResponse{Vertexes: []*control.Vertex{
		{Digest: "sha256:0", Name: "[internal] load build definition", Started: now},
		{Digest: "sha256:2", Name: "[3/3] RUN late"},
	}}) + traced(t, &control.StatusResponse{Vertexes: []*control.Vertex{first}}) +
		traced(t, &control.StatusResponse{Vertexes: []*control.Vertex{first}, Logs: []*control.VertexLog{{Msg: []byte("E: no such package\n")}}}) +
		`{"stream":"of an older builder"}` + "\n"
	var shown []string
	say := func(format string, values ...any) { shown = append(shown, fmt.Sprintf(format, values...)) }
	require.NoError(t, follow(strings.NewReader(stream), "x:1", say))
	require.Equal(t, []string{"x:1: [2/3] RUN set -eu"}, shown)

	var failed *FailedError
	err := follow(strings.NewReader(stream+`{"error":"exit code: 100"}`), "x:1", say)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "exit code: 100", failed.Why)
	require.Contains(t, err.Error(), "E: no such package")
	require.ErrorContains(t, follow(strings.NewReader("no JSON"), "x:1", say), "the daemon's answer")
}

func TestTail(t *testing.T) {
	t.Parallel()
	var kept tail
	for i := range 10_000 {
		kept.add(fmt.Sprintf("line %d, which is somewhat longer than a number\n", i))
	}
	require.Len(t, kept.String(), maxLog)
	require.True(t, strings.HasSuffix(kept.String(), "line 9999, which is somewhat longer than a number\n"))
	require.LessOrEqual(t, kept.b.Len(), 2*maxLog)
}

// TestList: what this program has, what it lacks, and what others have built; and nobody
// else's images.
func TestList(t *testing.T) {
	var containers []any
	b := fakeDaemon(t, Options{}, func(call string, _ *http.Request) (int, any) {
		switch call {
		case "GET /images/json":
			image := func(id string, created int, tags ...string) map[string]any {
				return map[string]any{"Id": id, "Size": 5, "Created": created, "RepoTags": tags}
			}
			return 200, []any{
				image("a", 3, "notebox/r:0000000000000001", "notebox/r:0000000000000004"), image("b", 1, "notebox/r:0000000000000002", "mine:1"),
				image("c", 2, "notebox/r:0000000000000003"), image("d", 4, "notebox/r:latest", "notebox/dependencies:0000000000000004-x", "postgres:16"),
			}
		case "GET /containers/json":
			return 200, containers
		case "GET /images/mine:1/json", "GET /images/b/json":
			return 200, map[string]string{"Id": "b"}
		case "GET /images/notebox/r:0000000000000004/json":
			return 200, map[string]string{"Id": "a"}
		}
		return 404, said(call)
	})
	list := func(keep ...string) []Kept {
		all, err := b.List(t.Context(), map[string]string{"r": "notebox/r:0000000000000001", "go": "notebox/go:0000000000000001"}, keep...)
		require.NoError(t, err)
		return all
	}
	old := func(tag, created int64) Kept {
		return Kept{Name: "r", Ref: fmt.Sprintf("notebox/r:%016d", tag), State: Old, Bytes: 5, Created: time.Unix(created, 0).UTC()}
	}
	now := []Kept{
		{Name: "go", Ref: "notebox/go:0000000000000001", State: Missing},
		{Name: "r", Ref: "notebox/r:0000000000000001", State: Current, Bytes: 5, Created: time.Unix(3, 0).UTC()},
	}
	require.Equal(t, append(now, old(4, 3), old(3, 2), old(2, 1)), list())

	inUse, serving := old(3, 2), old(3, 2)
	inUse.InUse, serving.InUse, serving.Serving = true, true, true
	service := map[string]string{"notebox.service": "other"}
	for desc, c := range map[string]struct {
		containers []any
		third      Kept
	}{
		"anybody's":              {[]any{map[string]any{"ImageID": "c", "State": "running"}}, inUse},
		"a service's":            {[]any{map[string]any{"ImageID": "c", "State": "running", "Labels": service}}, serving},
		"one that has ended":     {[]any{map[string]any{"ImageID": "c", "State": "exited", "Labels": service}}, inUse},
		"one with packages":      {[]any{map[string]any{"ImageID": "x", "State": "running", "Labels": map[string]string{"notebox.service": "other", "notebox.base": "c"}}}, serving},
		"one of the current one": {[]any{map[string]any{"ImageID": "a", "State": "running", "Labels": service}}, old(3, 2)},
		"a session of before":    {[]any{map[string]any{"ImageID": "c", "State": "running", "Labels": service}, map[string]any{"ImageID": "a", "State": "running", "Labels": service}}, inUse},
	} {
		containers = c.containers
		got := list()
		got[1].InUse = false // of the current one that is of no interest
		require.Equal(t, append(now, old(4, 3), c.third, old(2, 1)), got, desc)
	}

	containers = nil
	kept := old(2, 1)
	kept.InUse = true
	for _, keep := range []string{"mine:1", "b"} {
		require.Equal(t, append(now, old(4, 3), old(3, 2), kept), list(keep, "gone:1"), "what --image names stays")
	}
	kept = old(4, 3)
	kept.InUse = true
	now[1].InUse = true // it is the same image
	require.Equal(t, append(now, kept, old(3, 2), old(2, 1)), list("notebox/r:0000000000000004"))
}

func TestRemove(t *testing.T) {
	statuses := map[string]int{"/images/a:1": 200, "/images/b:1": 409, "/images/c:1": 404, "/images/d:1": 500}
	b := fakeDaemon(t, Options{}, func(call string, _ *http.Request) (int, any) {
		status := statuses[strings.TrimPrefix(call, "DELETE ")]
		if status == 200 {
			return 200, []any{}
		}
		return status, said("no")
	})
	require.NoError(t, b.Remove(t.Context(), "a:1"))
	require.ErrorIs(t, b.Remove(t.Context(), "b:1"), ErrInUse)
	require.NoError(t, b.Remove(t.Context(), "c:1"), "it is gone")
	require.ErrorContains(t, b.Remove(t.Context(), "d:1"), "no")
}

func tarFile(t *testing.T, names ...string) string {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, name := range names {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755}))
	}
	require.NoError(t, w.Close())
	file := filepath.Join(t.TempDir(), "base.tar")
	require.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
	return file
}

// TestBase: where the image comes from that all are made from.
func TestBase(t *testing.T) {
	zipped := filepath.Join(t.TempDir(), "base.tar.gz")
	require.NoError(t, os.WriteFile(zipped, []byte("\x1f\x8b\x08"+strings.Repeat("x", 600)), 0o600))
	const pull, load = "POST /images/create", "POST /images/load"
	for _, c := range []struct {
		desc, given string
		there       string // on the daemon
		pulled      string // the daemon's last words
		ref, err    string
		calls       []string
	}{
		{"Debian is there", "", "debian:1", "", "debian:1", "", nil},
		{"Debian of a registry", "", "", `{"status":"Done"}`, "debian:1", "", []string{pull + " debian"}},
		{"no registry", "", "", `{"error":"no such host"}`, "", "no such host; --base names an image", []string{pull + " debian"}},
		{"no registry, and what a file brought before", "", Imported, `{"error":"no such host"}`, Imported, "", []string{pull + " debian"}},
		{"no registry for what was named", "mine:2", Imported, `{"error":"no such host"}`, "", "no such host", []string{pull + " mine"}},
		{"an image", "mine:2", "mine:2", "", "mine:2", "", nil},
		{"an image of a registry", "mine:2", "", `{"status":"Done"}`, "mine:2", "", []string{pull + " mine"}},
		{"a file system", tarFile(t, "etc/passwd", "./usr/bin/bash"), "", `{"status":"sha256:1"}`, Imported, "", []string{pull + " -"}},
		{"a saved image", tarFile(t, "abc/layer.tar", "manifest.json"), "", `{"stream":"Loaded image: debian:trixie\n"}`, Imported, "", []string{load, "POST /images/debian:trixie/tag"}},
		{"a saved image without a name", tarFile(t, "manifest.json"), "", `{"stream":"Loaded image ID: sha256:12\n"}`, Imported, "", []string{load, "POST /images/sha256:12/tag"}},
		{"nothing of a saved image", tarFile(t, "manifest.json"), "", `{}`, "", "there is no image in it", []string{load}},
		{"another tar file", tarFile(t, "README"), "", "", "", "neither a file system with a shell nor an image", nil},
		{"a file that is not there", "./gone", "", "", "", "--base: stat ./gone: no such file", nil},
		{"a tar file that is not there", "gone.tar", "", "", "", "--base: stat gone.tar: no such file", nil},
		{"a folder", t.TempDir(), "", "", "", "it is no file", nil},
		{"a compressed one", zipped, "", "", "", "it is not an uncompressed tar file", nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var calls []string
			b := fakeDaemon(t, Options{}, func(call string, r *http.Request) (int, any) {
				if image, is := strings.CutSuffix(strings.TrimPrefix(call, "GET /images/"), "/json"); is {
					if image == c.there {
						return 200, map[string]string{"Id": "sha256:0"}
					}
					return 404, said("No such image")
				}
				_, _ = io.Copy(io.Discard, r.Body)
				switch call {
				case pull:
					from := r.URL.Query().Get("fromImage") + r.URL.Query().Get("fromSrc")
					calls = append(calls, call+" "+from[strings.LastIndex(from, "/")+1:])
				default:
					calls = append(calls, call)
				}
				return 200, c.pulled
			})
			ref, err := b.Base(t.Context(), c.given, "debian:1")
			require.Equal(t, c.calls, calls)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.ref, ref)
		})
	}
}

// TestRegistryHangs: an image that a file brought before is as good as one that a registry would
// send in time.
func TestRegistryHangs(t *testing.T) {
	b := fakeDaemon(t, Options{}, func(call string, r *http.Request) (int, any) {
		switch call {
		case "POST /images/create":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case "GET /images/" + Imported + "/json":
			return 200, map[string]string{"Id": "sha256:0"}
		}
		return 404, said("No such image")
	})
	b.pullTime = 50 * time.Millisecond
	ref, err := b.Base(t.Context(), "", "debian:1")
	require.NoError(t, err)
	require.Equal(t, Imported, ref)
	_, err = b.Base(t.Context(), "mine:2", "debian:1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestBuildRefused: a daemon without BuildKit, or without anything, ends the build with its
// words.
func TestBuildRefused(t *testing.T) {
	b := fakeDaemon(t, Options{}, func(call string, r *http.Request) (int, any) {
		_, _ = io.Copy(io.Discard, r.Body)
		return 400, said("buildkit is not supported")
	})
	context := func(w io.Writer) error { _, err := io.WriteString(w, "tar"); return err }
	require.Error(t, b.Build(t.Context(), Image{Ref: "x:1", Dockerfile: "Dockerfile", Context: context}))

	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/none.sock")
	gone, err := New(Options{})
	require.NoError(t, err)
	defer gone.Close()
	_, err = gone.Has(t.Context(), "x:1")
	require.ErrorContains(t, err, "notebox doctor says more")
	require.ErrorContains(t, gone.Build(t.Context(), Image{Ref: "x:1", Dockerfile: "Dockerfile", Context: context}), "notebox doctor says more")
}
