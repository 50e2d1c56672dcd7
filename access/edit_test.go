package access

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdd(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "keys")
	key := NewKey()
	require.NoError(t, Add(t.Context(), path, NamedEntry("alice", Limits{RunsAtOnce: 2}, SecretOf(key))))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// By hand, without a line's end, and open to others.
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(raw, "# a comment\nplain"...), 0o644))
	require.NoError(t, os.Chmod(path, 0o644))
	link := filepath.Join(folder, "link")
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, Add(t.Context(), link, NamedEntry("bob", Limits{}, SecretOf("b"))))
	info, err = os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	rotated := NewKey()
	require.NoError(t, AddSecret(t.Context(), path, "alice", SecretOf(rotated)))
	k, err := Open(link, Options{})
	require.NoError(t, err)
	require.Equal(t, 3, k.Len())
	require.Same(t, caller(t, k, key), caller(t, k, rotated))
	require.Equal(t, 2, caller(t, k, rotated).limits.RunsAtOnce)
	require.Equal(t, "bob", caller(t, k, "b").Name())
	_, ok := k.Find("plain")
	require.True(t, ok)
	raw, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(raw), "\n# a comment\nplain\nbob sha256:")
	require.NotContains(t, string(raw), key)

	for desc, err := range map[string]error{
		"the same name":    Add(t.Context(), path, NamedEntry("alice", Limits{}, SecretOf("c"))),
		"the same key":     Add(t.Context(), path, NamedEntry("carol", Limits{}, SecretOf("plain"))),
		"no such name":     AddSecret(t.Context(), path, "carol", SecretOf("c")),
		"the key of bob's": AddSecret(t.Context(), path, "alice", SecretOf("b")),
	} {
		require.Error(t, err, desc)
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(after), "what is refused changes nothing")

	carol := NamedEntry("carol", Limits{}, SecretOf("plain"))
	carol.Owner = SecretOf("plain").Owner()
	require.NoError(t, Add(t.Context(), path, carol), "takes the plain key's place")
	raw, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "\nplain\n")
	require.Contains(t, string(raw), "\n# a comment\nbob sha256:")
}

func TestAddAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			name := fmt.Sprintf("caller-%d", i)
			if err := Add(t.Context(), path, NamedEntry(name, Limits{}, SecretOf(name))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 16, strings.Count(string(raw), "\n"))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 2, "the file and its lock")
}
