package storage

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keyService is a service that shares a key file and a clock with others.
type keyService struct{ *Store }

func openKeyService(t *testing.T, path string, now *time.Time) keyService {
	t.Helper()
	s, err := Open(t.Context(), Options{
		URL: "mem://", KeyFile: path, KeyAge: 24 * time.Hour, TTL: time.Hour, Now: func() time.Time { return *now },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return keyService{s}
}

func (s keyService) link(t *testing.T) url.Values {
	t.Helper()
	link, _, err := s.Link(t.Context(), "runs/a", "")
	require.NoError(t, err)
	u, err := url.Parse(link)
	require.NoError(t, err)
	return u.Query()
}

// secretsIn counts the secrets in a key file.
func secretsIn(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	found, err := parseSecrets(content)
	require.NoError(t, err)
	return len(found)
}

// TestKeysChangeByAge in two services that share a file, with no link refused before its
// time is over.
func TestKeysChangeByAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.key")
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	first, second := openKeyService(t, path, &now), openKeyService(t, path, &now)
	type made struct {
		query url.Values
		at    time.Time
	}
	var links []made
	signatures := map[string]bool{}
	const step = 7 * time.Minute
	for end := now.Add(3 * 24 * time.Hour); now.Before(end); now = now.Add(step) {
		one, two := first.link(t), second.link(t)
		require.Equal(t, one, two, "both sign with one secret")
		signatures[string(first.keys.signing())] = true
		links = append(links, made{one, now})
		for len(links) > 0 && now.Sub(links[0].at) >= time.Hour {
			require.ErrorIs(t, first.Verify("runs/a", links[0].query), ErrExpired, "it is still known as genuine")
			links = links[1:]
		}
		for _, link := range links {
			require.NoError(t, first.Verify("runs/a", link.query))
			require.NoError(t, second.Verify("runs/a", link.query))
		}
	}
	require.Len(t, signatures, 3, "one a day")
	require.Equal(t, 3, secretsIn(t, path), "neither service adds one that the other has added")

	restarted := openKeyService(t, path, &now)
	for _, link := range links {
		if now.Sub(link.at) < time.Hour {
			require.NoError(t, restarted.Verify("runs/a", link.query), "links survive a restart")
		}
	}
	require.Equal(t, first.link(t), restarted.link(t))
}

func TestKeyThatSignsNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.key")
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := openKeyService(t, path, &now)
	old := s.keys.signing()
	now = now.Add(24 * time.Hour)
	require.Equal(t, old, s.keys.signing(), "the new one waits until all services know it")
	require.Len(t, s.keys.verifying(), 2, "and verifies already")
	now = now.Add(keyDelay)
	require.NotEqual(t, old, s.keys.signing())
	require.Len(t, s.keys.verifying(), 2)
	now = now.Add(time.Hour + keyDelay)
	require.Len(t, s.keys.verifying(), 2)
	now = now.Add(time.Hour)
	require.Len(t, s.keys.verifying(), 1, "what was signed with the old one has expired")
}

func TestKeysOfAnOwner(t *testing.T) {
	one := strings.Repeat("1a", secretBytes)
	for _, test := range []struct {
		desc    string
		content string
	}{
		{"without a time", one + "\n"},
		{"without a time, after one that has it", strings.Repeat("2b", secretBytes) + " 2020-01-01T00:00:00Z\n" + one},
	} {
		t.Run(test.desc, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.key")
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			s := openKeyService(t, path, &now)
			now = now.Add(1000 * time.Hour)
			require.Equal(t, one, hexes([]secret{{key: s.keys.signing()}})[0])
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, test.content, string(content), "nothing is added")
		})
	}
}

// TestKeysOfAProcess that has no file.
func TestKeysOfAProcess(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := openKeyService(t, "", &now)
	old, link := s.keys.signing(), s.link(t)
	now = now.Add(24*time.Hour - time.Minute)
	require.Equal(t, old, s.keys.signing())
	last := s.link(t)
	now = now.Add(2 * time.Minute)
	require.NotEqual(t, old, s.keys.signing())
	require.NoError(t, s.Verify("runs/a", last))
	require.ErrorIs(t, s.Verify("runs/a", link), ErrExpired)
}

// TestKeyFileThatIsGone leaves a service with the secrets that it knows.
func TestKeyFileThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.key")
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := openKeyService(t, path, &now)
	link := s.link(t)
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	now = now.Add(time.Minute)
	require.NoError(t, s.Verify("runs/a", link))
	require.NotEmpty(t, s.link(t))
}
