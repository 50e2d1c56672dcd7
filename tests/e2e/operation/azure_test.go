package operation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
	"notebox/tests/e2e/service"
)

// azureWait bounds what these tests wait for, on a machine that does much else.
const azureWait = 5 * time.Minute

// pictureAndFile leaves an image and a file, and takes little time.
const pictureAndFile = `import base64
from IPython.display import Image, display
display(Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==')))
open('out.csv', 'w').write('a,b\n1,2\n')
print('after')`

// onAzure starts a service that stores in a container of its own.
func onAzure(t *testing.T, azurite *storagetest.Server, name string, flags ...string) (p *service.Service, container string) {
	t.Helper()
	container = azurite.URL(t)
	var env []string
	for name, value := range azurite.Environment() {
		env = append(env, name+"="+value)
	}
	return service.Options{Name: name, Env: env, Flags: append([]string{"--pool-size", "0", "--storage", container}, flags...)}.Start(t), container
}

// TestAzureServesPlots: links are Azure's own, and it checks them.
func TestAzureServesPlots(t *testing.T) {
	t.Parallel()
	azurite := storagetest.Azurite(t)
	p, _ := onAzure(t, azurite, "azure")
	began := time.Now()
	r := p.Execute(t, map[string]any{"timeout": 300, "code": `import matplotlib.pyplot as plt
plt.plot([1, 3, 2])
plt.show()
open('out.csv', 'w').write('a,b\n1,2\n')`})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Len(t, r.Images, 1)
	require.Len(t, r.Files, 1)
	require.Empty(t, r.Skipped)
	for link, content := range map[string]string{r.Images[0].URL: string(r.Images[0].Data), r.Files[0].URL: "a,b\n1,2\n"} {
		require.True(t, strings.HasPrefix(link, azurite.Endpoint), link)
		require.Contains(t, r.Text, link)
		require.Equal(t, "r", mustParse(t, link).Query().Get("sp"), "it may read")
		status, served := service.Get(t, link)
		require.Equal(t, http.StatusOK, status, "%s", served)
		require.Equal(t, content, string(served))
		status, _ = service.Get(t, strings.Replace(link, "sig=", "sig=A", 1))
		require.Equal(t, http.StatusForbidden, status, "another signature")
		status, _ = service.Get(t, strings.Replace(link, r.ID, r.ID+"x", 1))
		require.Equal(t, http.StatusForbidden, status, "another object")
	}
	require.WithinRange(t, r.Files[0].ExpiresAt, began.Add(storage.DefaultTTL-time.Second), time.Now().Add(storage.DefaultTTL))
}

// TestAzureForgets: Azure refuses a link after its time, and after the retention there
// is nothing left of the run. Its times are as short as can be, so that nothing here has
// to be done in time.
func TestAzureForgets(t *testing.T) {
	t.Parallel()
	azurite := storagetest.Azurite(t)
	p, container := onAzure(t, azurite, "forgets", "--url-ttl", "2s", "--retention", "2s")
	r := p.Execute(t, map[string]any{"code": pictureAndFile, "timeout": 300})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Empty(t, r.Skipped)
	for _, link := range []string{r.Images[0].URL, r.Files[0].URL, r.Notebook.URL} {
		require.True(t, strings.HasPrefix(link, azurite.Endpoint), link)
		ends, err := time.Parse(time.RFC3339, mustParse(t, link).Query().Get("se"))
		require.NoError(t, err)
		require.False(t, ends.After(time.Now().Add(2*time.Second)))
		require.Eventually(t, func() bool {
			status, _ := service.Get(t, link)
			return status == http.StatusForbidden
		}, azureWait, 200*time.Millisecond, "it is refused after its time")
		require.False(t, time.Now().Before(ends), "and not before")
	}

	store, err := storage.Open(t.Context(), storage.Options{URL: container, Getenv: azurite.Getenv})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	run := strings.SplitAfter(keyOf(t, container, r.Files[0].URL), r.ID+"/")[0]
	require.Eventually(t, func() bool { return p.Metric(t, `notebox_stored_bytes_total{kind="other"}`) > 0 }, azureWait, 50*time.Millisecond,
		"result.json is stored after the reply")
	for _, key := range []string{"files/out.csv", "images/image_0.png", "notebook.ipynb", "result.json"} {
		require.Eventually(t, func() bool {
			f, err := store.Get(t.Context(), run+key)
			if err == nil {
				_ = f.Close()
			}
			return errors.Is(err, storage.ErrNotFound)
		}, azureWait, 200*time.Millisecond, "%s is gone after the retention", key)
	}
}

// keyOf is the key in the store of what a SAS URL leads to.
func keyOf(t *testing.T, container, link string) string {
	t.Helper()
	_, key, found := strings.Cut(mustParse(t, link).Path, "/"+mustParse(t, container).Host+"/")
	require.True(t, found, link)
	return key
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// TestStoreStopsWithinARun: status and text arrive, what was not stored says so, and
// with the store the service is itself again.
func TestStoreStopsWithinARun(t *testing.T) {
	t.Parallel()
	azurite := storagetest.Azurite(t)
	p, container := onAzure(t, azurite, "outage")
	requireReady(t, p, http.StatusOK)
	r := stopWithinARun(t, p, azurite, container)
	require.Equal(t, "ok", r.Status, r.Text)
	require.Contains(t, r.Text, "before\n")
	require.Contains(t, r.Text, "after\n")
	const text = "it could not be stored: the store does not answer"
	require.Len(t, r.Files, 3)
	for i, name := range []string{"0.csv", "1.csv", "2.csv"} {
		f := r.Files[i]
		require.Equal(t, service.File{Path: "/mnt/data/" + name, Name: name, Bytes: 8, Error: text, Retry: true}, f)
		require.Contains(t, r.Text, "[file "+name+": "+text+"]")
	}
	require.Len(t, r.Images, 1)
	require.Equal(t, text, r.Images[0].Error)
	require.True(t, r.Images[0].Retry)
	require.Empty(t, r.Images[0].URL)
	require.NotEmpty(t, r.Images[0].Data, "it is in the reply")
	require.Empty(t, r.Notebook.URL)
	var lost []string
	for _, s := range r.Skipped {
		require.Equal(t, text, s.Reason)
		require.True(t, s.Retry)
		lost = append(lost, s.Path)
	}
	require.ElementsMatch(t, []string{"/mnt/data/0.csv", "/mnt/data/1.csv", "/mnt/data/2.csv", "image_0.png", "notebook.ipynb"}, lost)
	requireReady(t, p, http.StatusServiceUnavailable)

	startAgain(t, azurite, container)
	requireReady(t, p, http.StatusOK)
	r = p.Execute(t, map[string]any{"code": pictureAndFile, "timeout": 300})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Empty(t, r.Skipped)
	for _, link := range []string{r.Files[0].URL, r.Images[0].URL, r.Notebook.URL} {
		status, _ := service.Get(t, link)
		require.Equal(t, http.StatusOK, status)
	}
}

// stopWithinARun stops the store while the run sleeps. If the machine was too slow
// for that, it lets another one sleep longer.
func stopWithinARun(t *testing.T, p *service.Service, azurite *storagetest.Server, container string) service.Reply {
	t.Helper()
	for _, pause := range []int{5, 20, 60} {
		e := p.Stream(t.Context(), t, map[string]any{"timeout": 300, "code": fmt.Sprintf(`print('before')
import time
time.sleep(%d)
for i in range(3):
    open(f'{i}.csv', 'w').write('a,b\n1,2\n')
%s`, pause, strings.Replace(pictureAndFile, "open(", "# ", 1))})
		for next, ok := e.Next(); next.Name != "output"; next, ok = e.Next() {
			require.True(t, ok, "the stream ended")
		}
		azurite.Stop(t)
		r := rest(t, e)
		stored := 0
		for _, f := range r.Files {
			if f.URL != "" {
				stored++
			}
		}
		if stored == 0 && len(r.Images) > 0 && r.Images[0].URL == "" {
			return r
		}
		startAgain(t, azurite, container)
	}
	t.Fatal("no run slept long enough for the store to be stopped")
	return service.Reply{}
}

// startAgain also makes the container, if Azurite was stopped before it had written
// it down.
func startAgain(t *testing.T, azurite *storagetest.Server, container string) {
	t.Helper()
	azurite.Start(t)
	store, err := storage.Open(t.Context(), storage.Options{URL: container, Getenv: azurite.Getenv})
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// rest reads a run's events up to its reply. A file that was not stored is told as well.
func rest(t *testing.T, e *service.Events) (r service.Reply) {
	t.Helper()
	told := 0
	for {
		next, ok := e.Next()
		require.True(t, ok, "the stream ended without a reply")
		switch next.Name {
		case "file":
			told++
		case "done":
			service.Decode(t, []byte(next.Data), &r)
			require.Equal(t, len(r.Files), told)
			return r
		}
	}
}

// requireReady waits until /readyz answers so: it gives its last answer again for a while.
func requireReady(t *testing.T, p *service.Service, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), azureWait)
	defer cancel()
	for {
		status, raw := service.Get(t, p.URL+"/readyz")
		// On a busy machine it can be the run to prove readiness that is late, too.
		if status == want && (want == http.StatusOK || strings.Contains(string(raw), "files cannot be stored: the store does not answer")) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("/readyz answers %d: %s", status, raw)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
