package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/storage"
)

func shortStall(c *Config) { c.StoreStall = 50 * time.Millisecond }

// TestUploadToAStoreThatHangs gives its place among the uploads back.
func TestUploadToAStoreThatHangs(t *testing.T) {
	s := newService(t, shortStall, func(c *Config) { c.Store = hanging{c.Store} })
	a := s.upload(nil, "a", "x")
	s.requireProblem(a, 503, storeAway)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Zero(t, s.server.Intake.Taken())
}

// TestInputOfAStoreThatHangs: the run gives up, and gives its place back.
func TestInputOfAStoreThatHangs(t *testing.T) {
	store := new(hangingGet)
	s := newService(t, shortStall, func(c *Config) { store.Store = c.Store; c.Store = store })
	id := s.keptOf(s.upload(nil, "a", "x"))[0].ID
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		_, err := readInputs(spec)
		return nil, fmt.Errorf("send the job: %w", err)
	}
	a := s.postJSON(`{"code":"x","files":[{"name":"a","id":"` + id + `"}]}`)
	require.Equal(t, 503, a.StatusCode, "%s", a.body)
	require.Contains(t, string(a.body), "the store of files does not answer")
}

// TestFileOfAStoreThatHangs is an error, however long its client would wait.
func TestFileOfAStoreThatHangs(t *testing.T) {
	store := new(hangingGet)
	s := newService(t, shortStall, func(c *Config) { store.Store = c.Store; c.Store = store })
	link := s.produce(map[string]string{string(storage.PartContent): "x"})[string(storage.PartContent)]
	a := s.get(link)
	require.Equal(t, 503, a.StatusCode, "%s", a.body)
	require.Contains(t, string(a.body), "the store of files does not answer")
}

// hangingGet hangs when it is asked for the content of an input, or what is called so.
type hangingGet struct{ Store }

func (h *hangingGet) Get(ctx context.Context, key string) (*storage.Reader, error) {
	if strings.HasSuffix(key, string(storage.PartContent)) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Get(ctx, key)
}
