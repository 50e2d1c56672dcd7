package docker

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/dependencies"
)

var apiVersion = regexp.MustCompile(`^/v[0-9.]+`)

// fakeDaemon answers calls as "DELETE /images/x" by a status and a value in JSON. Status 0
// breaks the connection.
func fakeDaemon(t *testing.T, answer func(call string, r *http.Request) (int, any)) *Images {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			return
		}
		status, v := answer(r.Method+" "+apiVersion.ReplaceAllString(r.URL.Path, ""), r)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(server.Close)
	return newEngineAt(t, "fake", "tcp://"+server.Listener.Addr().String()).Images()
}

func said(text string) map[string]string { return map[string]string{"message": text} }

// TestImagesRemoveInUse: an image that a container is made of while it is being removed
// keeps its names.
func TestImagesRemoveInUse(t *testing.T) {
	var mu sync.Mutex
	var tags []string
	i := fakeDaemon(t, func(call string, r *http.Request) (int, any) {
		mu.Lock()
		defer mu.Unlock()
		tag := strings.TrimPrefix(call, "DELETE /images/")
		switch {
		case call == "GET /containers/json":
			return 200, []any{} // not yet
		case strings.HasSuffix(call, "/json"):
			return 200, map[string]any{"Id": "sha256:1", "RepoTags": tags}
		case strings.HasSuffix(call, "/tag"):
			tags = append(tags, strings.TrimPrefix(r.URL.Query().Get("repo"), "docker.io/")+":"+r.URL.Query().Get("tag"))
			return 201, nil
		case tag == call:
			return 500, said("not expected: " + call)
		case len(tags) == 1:
			return 409, said("conflict: image is being used by running container")
		}
		tags = slices.DeleteFunc(tags, func(one string) bool { return one == tag })
		return 200, []any{}
	})
	before := []string{i.prefix + "def", i.prefix + "abc", i.prefix + "123"}
	tags = slices.Clone(before)
	require.ErrorIs(t, i.Remove(t.Context(), dependencies.Image{Ref: i.prefix + "abc", Layer: "abc"}), dependencies.ErrInUse)
	mu.Lock()
	defer mu.Unlock()
	require.ElementsMatch(t, before, tags)
}

// TestImagesCommitUnanswered: the container of a commit is looked for where the daemon has
// not said whether it made it.
func TestImagesCommitUnanswered(t *testing.T) {
	t.Parallel()
	gone := make(chan string, 10)
	attempts := 0
	i := fakeDaemon(t, func(call string, _ *http.Request) (int, any) {
		switch name, removal := strings.CutPrefix(call, "DELETE /containers/"); {
		case !removal:
			return 0, nil
		case attempts == 0: // it comes to be after that
			attempts++
			return 404, said("no such container")
		default:
			gone <- name
			return 204, nil
		}
	})
	_, err := i.Commit(t.Context(), "base", "abc", strings.NewReader(""), dependencies.Image{})
	require.ErrorIs(t, err, errUnanswered)
	require.Regexp(t, "^"+namePrefix+"layer-", <-gone)
}

// TestImagesSay what failed, to strangers.
func TestImagesSay(t *testing.T) {
	i := fakeDaemon(t, func(call string, _ *http.Request) (int, any) {
		switch {
		case strings.HasSuffix(call, "/create"):
			return 201, map[string]string{"Id": "1"}
		case strings.HasPrefix(call, "DELETE /containers/"):
			return 204, nil
		case strings.HasSuffix(call, "/archive"):
			return 200, nil
		}
		return 500, said("no space left on device")
	})
	_, commit := i.Commit(t.Context(), "base", "abc", strings.NewReader(""), dependencies.Image{})
	_, list := i.List(t.Context())
	_, id := i.ID(t.Context(), "base")
	for _, c := range []struct {
		err  error
		says string
	}{
		{commit, "the Docker daemon failed to keep packages"},
		{list, "the Docker daemon failed to list packages that are kept"},
		{id, "the Docker daemon failed to look an image up"},
		{i.Alias(t.Context(), "a", "b"), "the Docker daemon failed to name packages that are kept"},
		{i.Forget(t.Context(), "b"), "the Docker daemon failed to remove packages"},
	} {
		requireUnavailable(t, c.err)
		require.ErrorContains(t, c.err, c.says+": ")
		require.ErrorContains(t, c.err, "no space left on device")
		require.False(t, errors.Is(c.err, dependencies.ErrInUse))
	}
}

// TestReapOlder: the age of a container is by the clock that has given its time.
func TestReapOlder(t *testing.T) {
	var removed []string
	now := time.Now().Add(-time.Hour) // the daemon's
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		var answer any = map[string]any{}
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			answer = map[string]any{"SystemTime": now.Format(time.RFC3339Nano)}
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			answer = []any{map[string]any{"Id": "new", "Created": now.Unix() - 60}, map[string]any{"Id": "old", "Created": now.Unix() - 1200}}
		case r.Method == http.MethodDelete:
			removed = append(removed, path.Base(r.URL.Path))
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_HOST", "tcp://"+server.Listener.Addr().String())
	e, err := New(Options{ServiceID: "test-reap"})
	require.NoError(t, err)
	n, err := e.ReapOlder(t.Context(), 15*time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"old"}, removed)
	require.NoError(t, e.Close(t.Context()))
}
