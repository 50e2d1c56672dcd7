package redis_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/access/redis"
)

// aKey is alice's, in all tests.
const aKey = "a-key-of-alice"

// service is what one process has of limits.
type service struct {
	keys   *access.Keys
	log    *logged
	url    string
	limits access.Limits
}

// logged is what a service has logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// begin starts services with alice's limits at one store.
func begin(t testing.TB, n int, url string, l access.Limits) (all []*service) {
	t.Helper()
	for range n {
		all = append(all, open(t, url, l))
	}
	for _, s := range all {
		require.Eventually(t, func() bool { return s.sharing(t).Services == n }, 20*time.Second, 10*time.Millisecond)
	}
	return all
}

func open(t testing.TB, url string, l access.Limits) *service {
	t.Helper()
	store, err := redis.Open(url)
	require.NoError(t, err)
	s := &service{log: &logged{}, url: url, limits: l}
	s.keys, err = access.New([]access.Entry{
		access.NamedEntry("alice", l, access.SecretOf(aKey)), access.NamedEntry("bob", access.Limits{}, access.SecretOf("bob's")),
	}, access.Options{Store: store, Log: slog.New(slog.NewTextHandler(s.log, nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.keys.Watch(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		require.NoError(t, s.keys.Close())
		require.NoError(t, store.Close())
	})
	return s
}

func (s *service) caller(t testing.TB, key string) *access.Caller {
	t.Helper()
	c, err := s.keys.Caller(key)
	require.NoError(t, err)
	return c
}

func (s *service) alice(t testing.TB) *access.Caller { return s.caller(t, aKey) }

func (s *service) sharing(t testing.TB) access.Sharing {
	t.Helper()
	out, on := s.keys.Sharing()
	require.True(t, on)
	return out
}

// places begins runs at a service until it is refused one, at most n.
func (s *service) places(t testing.TB, n int) (all []*access.Run) {
	t.Helper()
	for range n {
		r, err := s.alice(t).BeginRun()
		if err != nil {
			requireRefused(t, err, access.ReasonRuns)
			break
		}
		all = append(all, r)
	}
	return all
}

func requireRefused(t testing.TB, err error, why access.Reason) {
	t.Helper()
	refused := (*access.Refusal)(nil)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, why, refused.Reason)
	require.Positive(t, refused.RetryAfter)
}

func requireState(t testing.TB, all []*service, state string) {
	t.Helper()
	for _, s := range all {
		require.Eventually(t, func() bool { return s.sharing(t).Store == state }, 20*time.Second, 10*time.Millisecond)
	}
}
