package session

import (
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"notebox/runner"
	"notebox/runner/internal/conversation"
)

func TestCleanPath(t *testing.T) {
	for _, c := range []struct {
		path    string
		clean   string
		refused string
	}{
		{path: ""}, {path: "."}, {path: "./"}, {path: "/mnt/data"}, {path: "/mnt/data/"}, {path: "/mnt//data/."},
		{path: "a", clean: "a"},
		{path: "./a//b/./c/", clean: "a/b/c"},
		{path: "/mnt/data/a", clean: "a"},
		{path: "/mnt/data/mnt/data/a", clean: "mnt/data/a"},
		{path: "mnt/data/a", clean: "mnt/data/a"},
		{path: "..a/b..", clean: "..a/b.."},
		{path: strings.Repeat("a", 255), clean: strings.Repeat("a", 255)},
		{path: "..", refused: "component .."},
		{path: "a/../b", refused: "component .."},
		{path: "/mnt/data/../data/a", refused: "component .."},
		{path: "/", refused: "not below"},
		{path: "/etc/passwd", refused: "not below"},
		{path: "/mnt/database", refused: "not below"},
		{path: "a\x00", refused: "zero byte"},
		{path: "a\xff", refused: "not UTF-8"},
		{path: strings.Repeat("a", 256), refused: "too long"},
		{path: strings.Repeat("a/", 2049), refused: "too long"},
	} {
		clean, err := cleanPath(c.path)
		if c.refused == "" {
			require.Nil(t, err, c.path)
			require.Equal(t, c.clean, clean)
			continue
		}
		require.NotNil(t, err, c.path)
		require.Equal(t, runner.FileRefused, err.Code)
		require.Equal(t, c.path, err.Path)
		require.Contains(t, err.Message, c.refused)
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, p := range []string{"a/b", "/mnt/data/./x", "../a", "/", "a//\x00", "\xff"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		clean, err := cleanPath(p)
		if err != nil {
			require.True(t, utf8.ValidString(clean))
			require.Empty(t, clean)
			return
		}
		require.True(t, clean == "" || conversation.CleanRelative(clean), "%q", clean)
		require.LessOrEqual(t, len(clean), maxPath)
		if clean != "" {
			again, err := cleanPath(path.Join(runner.DataFolder, clean))
			require.Nil(t, err)
			require.Equal(t, clean, again)
		}
	})
}

// TestGoneMemory: of very many ends, the newest are known.
func TestGoneMemory(t *testing.T) {
	m := newGoneMemory()
	key := func(i int) key { return key{"owner", strings.Repeat("x", i%7) + string(rune(i))} }
	for i := range maxGone + 10 {
		m.add(key(i), &runner.GoneError{Reason: runner.GoneClosed, At: time.Now()})
	}
	require.Len(t, m.ends, maxGone)
	require.Nil(t, m.find(key(9)))
	require.NotNil(t, m.find(key(10)))
}
