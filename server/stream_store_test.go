package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/storage"
)

// countingStore counts what is stored, by the end of its key.
type countingStore struct {
	Store
	mu   sync.Mutex
	puts []string
	hold chan struct{} // closed: images are stored; nil: at once
	fail int           // so many images are not stored
}

func (c *countingStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if strings.HasPrefix(name, "image") {
		if c.hold != nil {
			<-c.hold
		}
		c.mu.Lock()
		c.fail--
		failed := c.fail >= 0
		c.mu.Unlock()
		if failed {
			return storage.Object{}, errors.New("no")
		}
	}
	if name != "result.json" { // which comes after the reply
		c.mu.Lock()
		c.puts = append(c.puts, name)
		c.mu.Unlock()
	}
	return c.Store.Put(ctx, key, content, name)
}

func (c *countingStore) stored() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.puts...)
}

func TestImagesAreStoredOnce(t *testing.T) {
	for _, c := range []struct {
		desc   string
		accept string
		fail   int // images that the store does not take
		during []string
		after  []string
	}{
		{"with a stream, when it is told", "text/event-stream", 0, []string{"image_0.png"}, []string{"image_0.png", "notebook.ipynb"}},
		{"with a stream, again where it failed", "text/event-stream", 1, nil, []string{"image_0.png", "notebook.ipynb"}},
		{"without one, at the end", "application/json", 0, nil, []string{"image_0.png", "notebook.ipynb"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var store *countingStore
			s := newService(t, func(cfg *Config) {
				store = &countingStore{Store: cfg.Store, fail: c.fail}
				cfg.Store = store
			})
			s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(picture(""))})
				if c.during != nil {
					assert.Eventually(t, func() bool { return len(store.stored()) == len(c.during) }, time.Minute, time.Millisecond)
				} else { // what is not to come may be late
					time.Sleep(50 * time.Millisecond)
				}
				assert.Equal(t, c.during, store.stored())
				return executed(spec, runner.StatusOK, picture("")), nil
			}
			req := s.request(http.MethodPost, "/v1/execute", "text/plain", strings.NewReader("x"))
			req.Header.Set("Accept", c.accept)
			a := s.do(req)
			require.Equal(t, 200, a.StatusCode)
			require.ElementsMatch(t, c.after, store.stored())
			require.NotContains(t, string(a.body[strings.LastIndex(string(a.body), `"images"`):]), `"url":""`)
		})
	}
}

// TestRunDoesNotWaitForTheStore, and events stay in order.
func TestRunDoesNotWaitForTheStore(t *testing.T) {
	store := &countingStore{hold: make(chan struct{})}
	s := newService(t, func(cfg *Config) {
		store.Store = cfg.Store
		cfg.Store = store
	})
	run := s.stepwise(func(spec runner.Spec) *runner.Outcome { return executed(spec, runner.StatusOK) })
	r := s.stream(context.Background(), `{"code":"x"}`)
	r.want("started", nil)
	for range 3 {
		run.do(runner.EventOutput, 0, picture(""))
		run.do(runner.EventOutput, 0, stdout("after\n"))
	}
	run.end()
	close(store.hold)
	for range 3 {
		require.Contains(t, r.want("output", nil), "image/png")
		require.Contains(t, r.want("output", nil), "after")
	}
	r.want("done", nil)
}
