package redis_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/access/redis"
	"notebox/storage/storagetest"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, says string }{
		{"redis://host", ""},
		{"rediss://user:password@host:6380/3?prefix=one", ""},
		{"", "it must begin with"},
		{"http://user:password@host", "it must begin with"},
		{"redis://user:pass word@host", "it is no URL"},
		{"redis://user:password@host:port", "it is no URL"},
		{"redis:///0", "it must begin with"},
		{"redis://user:password@host/password", "its path must be"},
		{"rediss://user:password@host?skip_verify=true", "its only option is prefix"},
		{"redis://host?prefix=", "its prefix must not"},
		{"redis://host?prefix={a}", "its prefix must not"},
		{"redis://user:password@host#password", "its only option is prefix"},
	} {
		store, err := redis.Open(c.url)
		if c.says == "" {
			require.NoError(t, err, c.url)
			require.NoError(t, store.Close())
			continue
		}
		require.ErrorContains(t, err, c.says, c.url)
		require.NotContains(t, err.Error(), "pass")
	}
}

// client is the operator's own.
func client(t *testing.T, text string) (c *goredis.Client, prefix string) {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	prefix = u.Query().Get("prefix")
	u.RawQuery = ""
	o, err := goredis.ParseURL(u.String())
	require.NoError(t, err)
	o.Username = "default"
	c = goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c, prefix
}

// TestWhatIsThere: neither a key nor a name of a caller, and nothing that stays for ever.
func TestWhatIsThere(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	text := server.URL(t)
	one := begin(t, 1, text, access.Limits{RequestsPerMinute: 10, RunsAtOnce: 2, CPUPerDay: time.Hour})[0]
	require.NoError(t, one.alice(t).Request())
	runs := one.places(t, 2)
	runs[0].Charge(time.Second)
	runs[0].End()

	c, prefix := client(t, text)
	ctx := t.Context()
	keys, err := c.Keys(ctx, "*").Result()
	require.NoError(t, err)
	owner := one.alice(t).Owner()
	require.ElementsMatch(t, []string{
		prefix + ":services", prefix + ":{" + owner + "}:requests", prefix + ":{" + owner + "}:runs", prefix + ":{" + owner + "}:cpu",
	}, keys)
	for _, key := range keys {
		left, err := c.TTL(ctx, key).Result()
		require.NoError(t, err)
		require.Positive(t, left, key)
		require.LessOrEqual(t, left, 24*time.Hour, key)
		content, err := c.Dump(ctx, key).Result()
		require.NoError(t, err)
		for _, secret := range []string{"alice", aKey, access.SecretOf(aKey).String()} {
			require.NotContains(t, strings.ToLower(key+content), secret)
		}
	}
}

// TestPrefixes: deployments on one server do not count together.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	l := access.Limits{RunsAtOnce: 1}
	for range 2 {
		require.Len(t, begin(t, 1, server.URL(t), l)[0].places(t, 2), 1)
	}
}

// TestWrongPassword is an outage, and not shown.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storagetest.Redis(t).URL(t))
	require.NoError(t, err)
	u.User = url.UserPassword(storagetest.RedisUser, "secret-word")
	one := open(t, u.String(), access.Limits{RunsAtOnce: 1})
	require.Equal(t, access.SharingDown, one.sharing(t).Store)
	require.Len(t, one.places(t, 2), 1)
	require.Equal(t, 1, one.log.count("WRONGPASS"))
	require.Zero(t, one.log.count("secret-word"))
}

// TestFlushed: a server that lost its data while nobody asked hears all again.
func TestFlushed(t *testing.T) {
	t.Parallel()
	text := storagetest.Redis(t).URL(t)
	all := begin(t, 2, text, access.Limits{RunsAtOnce: 3, CPUPerDay: time.Minute})
	runs := all[0].places(t, 3)
	require.Len(t, runs, 3)
	runs[0].Charge(2 * time.Minute)
	runs[0].End()
	c, _ := client(t, text)
	require.NoError(t, c.FlushAll(t.Context()).Err())
	require.NoError(t, c.ScriptFlush(t.Context()).Err())
	third := open(t, text, access.Limits{RunsAtOnce: 3, CPUPerDay: time.Minute})
	require.Eventually(t, func() bool {
		return third.alice(t).MayUseCPU() != nil
	}, 20*time.Second, 100*time.Millisecond)
}
