package executor

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestCleanName(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, c := range []struct{ desc, name, want string }{
		{"plain", "a.csv", "a.csv"},
		{"folders", "a/b/c.csv", "a/b/c.csv"},
		{"the folder that models write", "/mnt/data/a.csv", "a.csv"},
		{"spaces and quotes", ` a "b" 'c'.csv`, ` a "b" 'c'.csv`},
		{"dots", "..a/b../.c/...", "..a/b../.c/..."},
		{"a dash first", "-rf", "-rf"},
		{"beyond ASCII", "数据/é.csv", "数据/é.csv"},
		{"255 bytes", long, long},
		{"256 bytes", long + "n", ""},
		{"too long", strings.Repeat("a/", 600) + "a", ""},
		{"too deep", strings.Repeat("a/", 64) + "a", ""},
		{"empty", "", ""},
		{"the folder itself", "/mnt/data/", ""},
		{"the folder itself without a slash", "/mnt/data", ""},
		{"another folder's start", "/mnt/database/a", ""},
		{"twice the folder", "/mnt/data//etc/x", ""},
		{"dot", ".", ""},
		{"dot before", "./a", ""},
		{"parent", "..", ""},
		{"parent before", "../x", ""},
		{"parent within", "a/../../x", ""},
		{"parent behind the folder", "/mnt/data/../x", ""},
		{"absolute", "/etc/x", ""},
		{"empty component", "a//b", ""},
		{"slash behind", "a/", ""},
		{"NUL", "a\x00b", ""},
		{"newline", "a\nb", ""},
		{"C1 control", "a\u0085b", ""},
		{"backslash", `a\b`, ""},
		{"not UTF-8", "a\xffb", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, why := CleanName(c.name)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want == "", why != "")
		})
	}
}

func requireSafe(t *testing.T, name string) {
	t.Helper()
	require.True(t, filepath.IsLocal(name), "%q", name)
	require.Equal(t, path.Clean(name), name)
	require.NotEqual(t, ".", name)
	require.True(t, utf8.ValidString(name))
	require.NotContains(t, name, "\x00")
}

func FuzzInputNames(f *testing.F) {
	f.Add("a", "a/b", "../x")
	f.Add("/mnt/data/a", "a", "b")
	f.Add("a/b/c", "a/b", "a//b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var all Inputs
		for _, name := range []string{a, b, c} {
			_, _ = all.Add("files[0]", name)
		}
		taken := map[string]bool{}
		for _, in := range all.List {
			requireSafe(t, in.Name)
			require.False(t, taken[in.Name])
			taken[in.Name] = true
		}
		for name := range taken {
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				require.False(t, taken[dir], "%q is a file and a folder", dir)
			}
		}
	})
}
