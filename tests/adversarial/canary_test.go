package adversarial

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCanary finds a secret in each form that it may leave in, wherever it stands.
func TestCanary(t *testing.T) {
	var c Canary
	secret := c.Secret("a file")
	backwards := []byte(secret)
	slices.Reverse(backwards)
	for _, form := range []string{
		secret,
		string(backwards),
		hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret))),
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("x" + secret + "y")),
		base64.StdEncoding.EncodeToString([]byte("xx" + secret + "yy")),
		base64.URLEncoding.EncodeToString([]byte("xxx???" + secret + "???")),
	} {
		c.found = nil
		c.Search("a reply", []byte(`{"text": "before `+form+` after"}`))
		require.NotEmpty(t, c.Found(), form)
	}
	c.found = nil
	c.Search("a reply", []byte("canary"+strings.Repeat("a", 26)))
	c.SearchAnswer(&Answer{Header: map[string][]string{"X": {"y"}}, Body: []byte(secret[:len(secret)-1])})
	require.Empty(t, c.Found())

	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "blob"), []byte("x"+secret), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, secret), nil, 0o600))
	require.NoError(t, c.SearchFiles("the store", folder))
	require.Equal(t, []string{
		"the name of the store /" + secret + " has the secret of a file",
		"the store /blob has the secret of a file",
	}, c.Found())
}
