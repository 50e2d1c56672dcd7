package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/server"
	"notebox/storage"
)

// codeFiles leaves three files, an image and text.
const codeFiles = `import base64
from IPython.display import Image, display
for name, size in ("a.bin", 1000), ("b.bin", 3_000_000), ("c.bin", 1000):
    open(name, "wb").write(bytes(size))
display(Image(data=base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")))
print("written")`

// faultyStore is a store with a fault.
type faultyStore struct {
	*storage.Store
	fault atomic.Pointer[func(context.Context, string, io.Reader) (io.Reader, error)] // nil: none
}

// Put is the store's, of what the fault lets through.
func (f *faultyStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if fault := f.fault.Load(); fault != nil {
		var err error
		if content, err = (*fault)(ctx, key, content); err != nil {
			return storage.Object{}, err
		}
	}
	return f.Store.Put(ctx, key, content, name)
}

func (f *faultyStore) Ready(ctx context.Context) error {
	if fault := f.fault.Load(); fault != nil {
		if _, err := (*fault)(ctx, "probe", strings.NewReader("")); err != nil {
			return err
		}
	}
	return f.Store.Ready(ctx)
}

var errStore = errors.New("dial tcp 10.1.2.3:443: connection refused")

// slowReader takes so long before each read.
type slowReader struct {
	io.Reader
	pause time.Duration
}

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(p)
}

// TestG09Storage has the store down, slow, hanging, and failing in the middle of a file.
func TestG09Storage(t *testing.T) {
	t.Parallel()
	everything := []string{"/mnt/data/a.bin", "/mnt/data/b.bin", "/mnt/data/c.bin", "image_0.png", "notebook.ipynb"}
	isB := func(key string) bool { return strings.HasSuffix(key, "/b.bin") }
	for _, c := range []struct {
		desc   string
		fault  func(ctx context.Context, key string, content io.Reader) (io.Reader, error)
		stored []string
		lost   []string
		ready  int
	}{
		{
			"down", func(context.Context, string, io.Reader) (io.Reader, error) { return nil, errStore },
			nil, everything, http.StatusServiceUnavailable,
		},
		{
			"slow", func(_ context.Context, _ string, content io.Reader) (io.Reader, error) {
				return slowReader{content, 20 * time.Millisecond}, nil
			},
			[]string{"a.bin", "b.bin", "c.bin"}, nil, http.StatusOK,
		},
		{
			"failing in the middle of one file", func(_ context.Context, key string, content io.Reader) (io.Reader, error) {
				if isB(key) { // after a third of it
					return io.MultiReader(io.LimitReader(content, 1_000_000), failingReader{}), nil
				}
				return content, nil
			},
			[]string{"a.bin", "c.bin"}, []string{"/mnt/data/b.bin"}, http.StatusOK,
		},
		{
			"hanging with what is stored after the run", func(ctx context.Context, key string, content io.Reader) (io.Reader, error) {
				if strings.Contains(key, "/files/") {
					return content, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
			[]string{"a.bin", "b.bin", "c.bin"}, []string{"image_0.png", "notebook.ipynb"}, http.StatusServiceUnavailable,
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			var store *faultyStore
			l := newLibrary(t, new(clock), func(s *storage.Store) server.Store {
				store = &faultyStore{Store: s}
				return store
			})
			store.fault.Store(&c.fault)
			a := l.run(codeFiles)
			require.Equal(t, http.StatusOK, a.status, "the run itself was good: %s", a.body)
			require.NotContains(t, string(a.body), "10.1.2.3", "where the store is, is nobody's business")
			r := a.reply(t)
			require.Equal(t, "ok", r.Status)
			require.Contains(t, r.Text, "written\n")
			require.Contains(t, string(a.body), "iVBORw0KGgo", "the image is in the reply")
			require.Equal(t, c.stored, r.stored())
			require.Subset(t, r.lost(), c.lost)
			for _, name := range c.stored {
				require.NotContains(t, r.lost(), "/mnt/data/"+name)
				require.Equal(t, http.StatusOK, send(http.MethodGet, r.url(name), "", nil).status)
			}
			l.requireWhole(t)
			for path := range filesBelow(t, l.files) {
				for _, lost := range c.lost {
					require.NotEqual(t, filepath.Base(lost), filepath.Base(path), "what was not stored whole is not there")
				}
			}
			l.requireReady(c.ready)

			store.fault.Store(nil)
			l.requireReady(http.StatusOK)
			r = l.run(codeFiles).reply(t)
			require.Equal(t, []string{"a.bin", "b.bin", "c.bin"}, r.stored())
			require.NotEmpty(t, r.Notebook.URL)
			require.Empty(t, r.lost())
		})
	}
}

// failingReader is where a transfer breaks off.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errStore }
