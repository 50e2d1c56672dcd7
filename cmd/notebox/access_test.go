package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
)

// TestFirstKey: a file that is missing or empty gets a key, which is shown and works. One with
// keys stays as it is.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc string
		old  *string
		made bool
	}{
		{"missing", nil, true},
		{"empty", new(""), true},
		{"with a key", new("alices-key\n"), false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "api-keys")
			if c.old != nil {
				require.NoError(t, os.WriteFile(file, []byte(*c.old), 0o600))
			}
			var said bytes.Buffer
			require.NoError(t, makeFirstKey(t.Context(), file, &said))
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			if !c.made {
				require.Equal(t, *c.old, string(raw))
				require.Empty(t, said.String())
				return
			}
			key := regexp.MustCompile(`once: (notebox_\S{43})\n`).FindStringSubmatch(said.String())
			require.NotNil(t, key, said.String())
			require.Equal(t, "first "+access.SecretOf(key[1]).String()+"\n", string(raw))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			said.Reset()
			require.NoError(t, makeFirstKey(t.Context(), file, &said))
			require.Empty(t, said.String(), "shown once")
		})
	}
}

func TestFirstKeyNeedsAFile(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, makeFirstKey(t.Context(), filepath.Join(t.TempDir(), "none", "api-keys"), &bytes.Buffer{}), "no such file")
}
