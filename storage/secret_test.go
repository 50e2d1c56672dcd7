package storage

import (
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeyFile(t *testing.T) {
	one, two := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	for _, test := range []struct {
		desc    string
		content string
		mode    os.FileMode
		want    []string
		err     string
	}{
		{"as it is made", keyFileHeader + one + "\n", 0o600, []string{one}, ""},
		{"without a line end", one, 0o600, []string{one}, ""},
		{"for reading alone", one, 0o400, []string{one}, ""},
		{"several", one + "\n\n# new\n" + two + "\r\n", 0o600, []string{one, two}, ""},
		{"with times", one + " 2026-01-31T12:00:00Z\n" + two + "  2026-02-28T12:00:00+01:00\n", 0o600, []string{one, two}, ""},
		{"with what is no time", one + " soon\n", 0o600, nil, "line 1: want a time"},
		{"readable by the group", one, 0o640, nil, "mode 0640"},
		{"readable by all", one, 0o604, nil, "mode 0604"},
		{"too short", one[:62], 0o600, nil, "line 1: want a secret of 64 hex digits"},
		{"too long", one + "00", 0o600, nil, "line 1: want a secret of 64 hex digits"},
		{"cut", one + "\n" + two[:10], 0o600, nil, "line 2: want a secret of 64 hex digits"},
		{"not hex", strings.Repeat("xy", 32), 0o600, nil, "line 1: want a secret of 64 hex digits"},
		{"a comment alone", keyFileHeader, 0o600, nil, "holds no secret"},
		{"endless", strings.Repeat("\n", maxKeyFileBytes+1), 0o600, nil, "more than 65536 bytes"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.key")
			require.NoError(t, os.WriteFile(path, []byte(test.content), test.mode))
			got, err := loadSecrets(path, started, notDue)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.ErrorContains(t, err, path, "it names the file")
				require.NotContains(t, err.Error(), test.content[:10], "and not the secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, hexes(got))
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, test.content, string(left), "it is not written again")
		})
	}
	t.Run("another user's, readable by its group", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can give files away")
		}
		path := filepath.Join(t.TempDir(), "links.key")
		require.NoError(t, os.WriteFile(path, []byte(one), 0o600))
		for mode, ok := range map[os.FileMode]bool{0o440: true, 0o460: false, 0o444: false} {
			require.NoError(t, errors.Join(os.Chown(path, 61234, 0), os.Chmod(path, mode)))
			got, err := loadSecrets(path, started, notDue)
			require.Equal(t, ok, err == nil, "%v: %v", mode, err)
			require.Equal(t, ok, len(got) == 1)
		}
	})
	t.Run("a folder", func(t *testing.T) {
		_, err := loadSecrets(t.TempDir(), started, notDue)
		require.Error(t, err)
	})
}

func TestKeyFileIsMade(t *testing.T) {
	for _, test := range []struct {
		desc    string
		prepare func(t *testing.T, path string)
	}{
		{"in a folder that is missing", func(*testing.T, string) {}},
		{"where its maker died", func(t *testing.T, path string) {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}},
	} {
		t.Run(test.desc, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "links.key")
			test.prepare(t, path)
			first, err := loadSecrets(path, started, notDue)
			require.NoError(t, err)
			require.Len(t, first, 1)
			again, err := loadSecrets(path, started, notDue)
			require.NoError(t, err)
			require.Equal(t, first, again)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		})
	}
	t.Run("another each time without a file", func(t *testing.T) {
		var keys [][]byte
		for range 2 {
			k, err := openKeyring("", 0, time.Hour, time.Now)
			require.NoError(t, err)
			keys = append(keys, k.signing())
		}
		require.NotEqual(t, keys[0], keys[1])
	})
}

func notDue([]secret) (secret, bool) { return secret{}, false }

// childKeyFile makes the test's program print the secrets of the file that it names.
const childKeyFile = "NOTEBOX_TEST_KEY_FILE"

func TestKeyFileIsOneForProcessesThatStartAtOnce(t *testing.T) {
	if path := os.Getenv(childKeyFile); path != "" {
		got, err := loadSecrets(path, started, notDue)
		require.NoError(t, err)
		_, _ = os.Stdout.WriteString("secret " + strings.Join(hexes(got), ",") + "\n")
		return
	}
	path := filepath.Join(t.TempDir(), "links.key")
	outputs := make([]string, 8)
	var all sync.WaitGroup
	for i := range outputs {
		all.Go(func() {
			child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			child.Env = append(os.Environ(), childKeyFile+"="+path)
			output, err := child.Output()
			outputs[i] = string(output)
			if err != nil {
				outputs[i] = err.Error()
			}
		})
	}
	all.Wait()
	want, err := loadSecrets(path, started, notDue)
	require.NoError(t, err)
	for _, output := range outputs {
		require.Contains(t, output, "secret "+hexes(want)[0]+"\n")
	}
}

func TestLinksSurviveARestartAndANewSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.key")
	open := func() *Store {
		s, err := Open(t.Context(), Options{URL: "mem://", KeyFile: path, TTL: time.Hour})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	query := func(s *Store) url.Values {
		link, _, err := s.Link(t.Context(), "runs/a", "")
		require.NoError(t, err)
		u, err := url.Parse(link)
		require.NoError(t, err)
		return u.Query()
	}
	first := open()
	old := query(first)
	require.NoError(t, open().Verify("runs/a", old))

	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(strings.Repeat("2b", 32) + "\n")
	require.NoError(t, errors.Join(err, file.Close()))
	rotated := open()
	require.NoError(t, rotated.Verify("runs/a", old), "the old one verifies")
	require.ErrorIs(t, first.Verify("runs/a", query(rotated)), ErrSignature, "the new one signs")
}

func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte(keyFileHeader + strings.Repeat("1a", 32) + "\n"))
	f.Add([]byte("\n#\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := parseSecrets(content)
		if err != nil {
			return
		}
		require.NotEmpty(t, got)
		for _, s := range got {
			require.Len(t, s.key, secretBytes)
		}
	})
}

func hexes(secrets []secret) []string {
	var texts []string
	for _, s := range secrets {
		texts = append(texts, hex.EncodeToString(s.key))
	}
	return texts
}
