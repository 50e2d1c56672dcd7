package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// cutStore gives shares that can be read until cut is called.
type cutStore struct {
	Store
	cut func(context.Context) context.Context
}

func (c cutStore) Get(ctx context.Context, key string) (*storage.Reader, error) {
	if strings.HasSuffix(key, "/"+string(storage.KindShare)) {
		ctx = c.cut(ctx)
	}
	return c.Store.Get(ctx, key)
}

// TestAShareIsCutOff: where the store fails in the middle of a shared run, its reader can tell,
// also a program that reads JSON.
func TestAShareIsCutOff(t *testing.T) {
	var stop context.CancelFunc = func() {}
	store := sharedStore(t, "mem://", nil)
	s := newService(t, over(cutStore{store, func(ctx context.Context) context.Context {
		ctx, stop = context.WithCancel(ctx)
		return ctx
	}}, "a"))
	var outputs []string
	for range 16 {
		outputs = append(outputs, display(map[string]any{"image/png": pixels(t, 2), "text/plain": strings.Repeat("x", 450<<10)}))
	}
	sharing(s, outputs...)
	link := s.shared("", s.ran("", `{"code":"x"}`)).URL
	for _, accept := range []string{"application/json", "text/html"} {
		req, err := http.NewRequest(http.MethodGet, link, nil)
		require.NoError(t, err)
		req.Header.Set("Accept", accept)
		req.Header.Set("Accept-Encoding", "identity")
		a, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, a.Body, 1000)
		require.NoError(t, err)
		stop()
		_, err = io.Copy(io.Discard, a.Body)
		require.Error(t, err, accept)
		require.NoError(t, a.Body.Close())
	}
}
