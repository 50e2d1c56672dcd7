package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
)

// key runs notebox key.
func key(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	c := keyCommand()
	require.NoError(t, c.FlagSet.Parse(args))
	k := newKey{
		file:   c.FlagSet.Lookup("file").Value.String(),
		rotate: c.FlagSet.Lookup("rotate").Value.String() == "true",
		stdin:  c.FlagSet.Lookup("stdin").Value.String() == "true",
	}
	var out bytes.Buffer
	err := k.run(t.Context(), strings.NewReader(stdin), &out, c.FlagSet.Args())
	return out.String(), err
}

func TestKey(t *testing.T) {
	t.Parallel()
	out, err := key(t, "", "alice", "runs-at-once=2", "network=no")
	require.NoError(t, err)
	secret, line, _ := strings.Cut(out, "\n")
	require.Regexp(t, `^notebox_\S{43}$`, secret)
	require.Equal(t, "alice "+access.SecretOf(secret).String()+" runs-at-once=2 network=no\n", line)

	out, err = key(t, "an-old-key\n", "-stdin", "bob")
	require.NoError(t, err)
	e, err := access.ParseLine(out[:len(out)-1])
	require.NoError(t, err)
	require.Equal(t, access.PlainEntry("an-old-key").Owner, e.Owner, "what it made stays its own")
	require.NotContains(t, out, "an-old-key")

	for _, c := range []struct {
		desc, stdin, err string
		args             []string
	}{
		{"no name", "", "a name is needed", nil},
		{"a name that is none", "", "a name is up to 64", []string{"a b"}},
		{"a name with more in it", "", "a name is up to 64", []string{"a sha256:" + strings.Repeat("0", 64)}},
		{"a plain key in place of a name", "", "a name is up to 64", []string{"=x"}},
		{"an unknown limit", "", "that is no limit", []string{"alice", "runs=2"}},
		{"limits with -rotate", "", "leaves the limits as they are", []string{"-file", "x", "-rotate", "alice", "network=no"}},
		{"-rotate without -file", "", "needs -file", []string{"-rotate", "alice"}},
		{"nothing to read", "", "one word of visible ASCII", []string{"-stdin", "alice"}},
		{"two words to read", "secret word", "one word of visible ASCII", []string{"-stdin", "alice"}},
		{"a folder that is not there", "", "no such file", []string{"-file", filepath.Join(t.TempDir(), "none", "keys"), "alice"}},
	} {
		out, err := key(t, c.stdin, c.args...)
		require.ErrorContains(t, err, c.err, c.desc)
		require.NotContains(t, err.Error(), "secret", c.desc)
		require.Empty(t, out, c.desc)
	}
}

func TestKeyInFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	first, err := key(t, "", "-file", path, "alice", "sessions=no")
	require.NoError(t, err)
	second, err := key(t, "", "-file", path, "-rotate", "alice")
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte("old\n"), raw...), 0o600))
	out, err := key(t, "old", "-stdin", "-file", path, "bob")
	require.NoError(t, err)
	require.Empty(t, out)
	_, err = key(t, "", "-file", path, "alice")
	require.ErrorContains(t, err, "an earlier line has the same name")

	keys, err := access.Open(path, access.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, keys.Len())
	for presented, name := range map[string]string{strings.TrimSpace(first): "alice", strings.TrimSpace(second): "alice", "old": "bob"} {
		c, err := keys.Caller(presented)
		require.NoError(t, err)
		require.Equal(t, name, c.Name())
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
