package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/storage"
)

// produceAll is a run with an image, text and these files.
func (s *service) produceAll(files ...string) {
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		out := executed(spec, runner.StatusOK, stdout("x\n"),
			`{"output_type":"display_data","metadata":{},"data":{"image/png":"`+onePixel+`"}}`)
		for _, name := range files {
			if err := events.File(ctx, name, strings.NewReader("content")); err != nil {
				out.Skipped = append(out.Skipped, runner.Skipped{Path: "/mnt/data/" + name, Reason: err.Error()})
			}
		}
		return out, nil
	}
}

func TestRunWhileTheStoreIsAway(t *testing.T) {
	const text = "it could not be stored: the store does not answer"
	s, store := newAway(t)
	s.produceAll("a.csv", "dir/b.csv")
	store.down.Store(true)
	a := s.postJSON(`{"code":"x"}`)
	r := s.replied(a)
	require.Equal(t, "ok", r.Status)
	require.Equal(t, "x\n[image image_0.png]\n[file a.csv: "+text+"]\n[file dir/b.csv: "+text+"]\n", r.Text)
	require.Len(t, r.Files, 2)
	for i, path := range []string{"/mnt/data/a.csv", "/mnt/data/dir/b.csv"} {
		require.Equal(t, path, r.Files[i]["path"])
		require.Equal(t, 7.0, r.Files[i]["bytes"])
		require.Equal(t, text, r.Files[i]["error"])
		require.Equal(t, true, r.Files[i]["retry"])
		require.Empty(t, r.Files[i]["url"])
	}
	require.Equal(t, text, r.Images[0]["error"])
	require.Equal(t, true, r.Images[0]["retry"])
	require.Equal(t, onePixel, r.Images[0]["data"])
	require.Empty(t, r.Notebook.URL)
	require.Equal(t, []executor.Skipped{
		{Path: "/mnt/data/a.csv", Reason: text, Retry: true}, {Path: "/mnt/data/dir/b.csv", Reason: text, Retry: true},
		{Path: "image_0.png", Reason: text, Retry: true}, {Path: "notebook.ipynb", Reason: text, Retry: true},
	}, r.Skipped)
	require.NotContains(t, string(a.body), "internal")

	doc := loadOpenAPI(t, openAPI)
	var raw any
	require.NoError(t, json.Unmarshal(a.body, &raw))
	require.NoError(t, doc.Components.Schemas["Reply"].Value.VisitJSON(raw))

	store.down.Store(false)
	r = s.replied(s.postJSON(`{"code":"x"}`))
	require.Empty(t, r.Skipped)
	require.Equal(t, "content", string(s.get(r.Files[1]["url"].(string)).body))
}

// rereading is a store that reads the start of everything twice.
type rereading struct {
	Store
	tries atomic.Int64
}

func (o *rereading) Replay(content io.Reader, _ string) io.ReadCloser {
	return struct {
		io.ReadSeeker
		io.Closer
	}{&rereader{content: content}, io.NopCloser(nil)}
}

// rereader keeps all.
type rereader struct {
	content io.Reader
	all     []byte
	at      int
}

func (r *rereader) Read(p []byte) (int, error) {
	if r.at < len(r.all) {
		n := copy(p, r.all[r.at:])
		r.at += n
		return n, nil
	}
	n, err := r.content.Read(p)
	r.all = append(r.all, p[:n]...)
	r.at += n
	return n, err
}

func (r *rereader) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		r.at = int(offset)
	}
	return int64(r.at), nil
}

func (o *rereading) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	seeker, ok := content.(io.Seeker)
	if !ok {
		return storage.Object{}, errors.New("the content cannot be read again")
	}
	if strings.HasPrefix(key, "runs/") {
		o.tries.Add(1)
		_, _ = io.CopyN(io.Discard, content, 3)
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return storage.Object{}, err
		}
	}
	return o.Store.Put(ctx, key, content, name)
}

// TestStoreMayReadAgain what is stored: all of it is given so that it can.
func TestStoreMayReadAgain(t *testing.T) {
	store := new(rereading)
	s := newService(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	s.produceAll("a.csv")
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.Empty(t, r.Skipped)
	require.Equal(t, "content", string(s.get(r.Files[0]["url"].(string)).body))
	require.Contains(t, string(s.get(r.Notebook.URL).body), "nbformat")
	require.NoError(t, s.server.Wait(t.Context()))
	require.EqualValues(t, 4, store.tries.Load(), "the file, the image, the notebook and result.json")
}

type hanging struct{ Store }

func (hanging) Put(ctx context.Context, _ string, content io.Reader, _ string) (storage.Object, error) {
	_, _ = io.Copy(io.Discard, content)
	<-ctx.Done()
	return storage.Object{}, ctx.Err()
}

func TestReadyzIsGreenAgainWithTheStore(t *testing.T) {
	clock := new(testClock)
	s, store := newAway(t, clock.set)
	for range 2 {
		store.down.Store(true)
		clock.advance(2 * readyFor)
		s.requireProblem(s.get("/readyz"), 503, "files cannot be stored: the store does not answer")
		store.down.Store(false)
		clock.advance(2 * readyFor)
		require.Equal(t, 200, s.get("/readyz").StatusCode)
	}
}

func TestResultFile(t *testing.T) {
	s := newService(t)
	s.produceAll("a.csv")
	before := time.Now().Add(-time.Second)
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.NoError(t, s.server.Wait(t.Context()))
	key := strings.TrimSuffix(mustKey(t, r.Notebook.URL), "notebook.ipynb") + "result.json"
	f, err := s.server.Store.Get(t.Context(), key)
	require.NoError(t, err)
	defer f.Close()
	var told struct {
		replyJSON
		Started  time.Time
		Language string
	}
	require.NoError(t, json.NewDecoder(f).Decode(&told))
	require.Equal(t, "python", told.Language)
	require.WithinRange(t, told.Started, before, time.Now())
	require.NotContains(t, told.Images[0], "data", "the image stands beside it")
	delete(r.Images[0], "data")
	require.Equal(t, r, told.replyJSON)
}

func mustKey(t *testing.T, link string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, link, nil)
	require.NoError(t, err)
	key, ok := strings.CutPrefix(req.URL.Path, filesPrefix)
	require.True(t, ok, link)
	return key
}

func TestRetention(t *testing.T) {
	sweeps := make(chan time.Time, 100)
	clock := new(testClock)
	s := newService(t, clock.set, func(c *Config) {
		c.Retention = 4 * time.Second
		c.Store = sweptStore{c.Store, sweeps}
	})
	for range 2 { // again and again
		select {
		case before := <-sweeps:
			require.WithinDuration(t, clock.now().Add(-5*time.Second), before, time.Minute)
		case <-time.After(time.Minute):
			t.Fatal("the store was not swept")
		}
	}
	require.NoError(t, s.server.Close())
}

type sweptStore struct {
	Store
	sweeps chan time.Time
}

func (s sweptStore) Sweep(_ context.Context, before time.Time) (int, error) {
	select {
	case s.sweeps <- before:
	default:
	}
	return 3, errors.New("one is left")
}

func TestWithoutRetentionNothingExpires(t *testing.T) {
	s := newService(t)
	require.Nil(t, s.keptOf(s.upload(nil, "a", "x"))[0].ExpiresAt)
}
