package storage

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinkEscapesTheKey(t *testing.T) {
	now := time.Unix(1_800_000_000, 999)
	s, err := Open(t.Context(), Options{URL: "mem://", Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, test := range []struct{ desc, name, base, want string }{
		{"ordinary", "out.csv", "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/files/runs/2026-07-02/run_1/files/out.csv?"},
		{"base with a path", "out.csv", "https://example.org/code/", "https://example.org/code/v1/files/runs/2026-07-02/run_1/files/out.csv?"},
		{"no base", "out.csv", "", "/v1/files/runs/2026-07-02/run_1/files/out.csv?"},
		{"as Markdown takes it", "a (1)[2]<3>.png", "", "/v1/files/runs/2026-07-02/run_1/files/a%20%281%29=5B2=5D=3C3=3E.png?"},
		{"a query within", "a?b#c&d", "", "/v1/files/runs/2026-07-02/run_1/files/a=3Fb=23c=26d?"},
		{"not ASCII", "é/b", "", "/v1/files/runs/2026-07-02/run_1/files/%C3%A9=/b?"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			key := RunKey(started, "run_1", KindFile, test.name)
			link, expires, err := s.Link(t.Context(), key, test.base)
			require.NoError(t, err)
			require.Equal(t, time.Unix(1_800_000_000, 0).Add(DefaultTTL).UTC(), expires)
			u, err := url.Parse(link)
			require.NoError(t, err)
			require.Equal(t, test.want, link[:len(link)-len(u.RawQuery)])
			require.NoError(t, s.Verify(key, u.Query()))
		})
	}
}

// TestSign: a query for another address of the service's own is one that Verify takes.
func TestSign(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, err := Open(t.Context(), Options{URL: "mem://", Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key := RunKey(started, "run_1", KindFile, "ses_1/a.csv")
	query, expires, err := s.Sign(key)
	require.NoError(t, err)
	require.Equal(t, now.Add(DefaultTTL).UTC(), expires)
	require.NoError(t, s.Verify(key, query))
	require.ErrorIs(t, s.Verify(RunKey(started, "run_1", KindFile, "ses_2/a.csv"), query), ErrSignature)
	now = expires
	require.ErrorIs(t, s.Verify(key, query), ErrExpired)
	for _, none := range []string{"", "a/../b", RecordKey("executions", "-", "x")} {
		_, _, err := s.Sign(none)
		require.Error(t, err, none)
	}
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	keys := &keyring{secrets: []secret{{key: make([]byte, secretBytes)}}, age: DefaultKeyAge, path: "fixed", checked: now, now: clock}
	s := &Store{keys: keys, ttl: time.Hour, now: clock}
	key := RunKey(started, "run_1", KindFile, "out.csv")
	link, expires, err := s.Link(f.Context(), key, "")
	require.NoError(f, err)
	u, err := url.Parse(link)
	require.NoError(f, err)
	seconds, signature := strconv.FormatInt(expires.Unix(), 10), u.Query().Get(querySignature)
	f.Add(key, u.RawQuery)
	f.Add(key, "expires=9"+seconds+"&signature="+signature)
	f.Add(key, "expires="+seconds+"%0A&signature="+signature)
	f.Add(key+"x", u.RawQuery)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, k, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if err := s.Verify(k, q); err == nil {
			require.Equal(t, key, k)
			require.Equal(t, []string{seconds}, q[queryExpires])
			require.Equal(t, []string{signature}, q[querySignature])
		}
	})
}
