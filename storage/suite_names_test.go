package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// hostileNames are cases E7 and E8: what code can call its files. They are all put
// into one run, beside each other.
var hostileNames = []struct{ desc, name string }{
	{"ordinary", "out.csv"},
	{"in a folder", "plots/a b.png"},
	{"a file", "a"},
	{"a folder of the same name", "a/b"},
	{"and deeper", "a/b/c"},
	{"a newline", "line\nbreak.txt"},
	{"a header in it", "a\r\nSet-Cookie: x=1\r\n.txt"},
	{"quotes", `"double" 'single' back` + "`tick`"},
	{"right-to-left override", "photo\u202egpj.exe"},
	{"other invisible marks", "\u200b\u2066a\u2069\ufeff"},
	{"leading dash", "-rf"},
	{"255 bytes", strings.Repeat("n", 255)},
	{"another 255 bytes", strings.Repeat("n", 254) + "m"},
	{"255 bytes that are escaped", strings.Repeat("\n", 255)},
	{"255 bytes of three each", strings.Repeat("数", 85)},
	{"parent", ".."},
	{"current", "."},
	{"parent of a parent", "../../etc/passwd"},
	{"a parent within", "a/../../b"},
	{"absolute", "/etc/passwd"},
	{"nothing", ""},
	{"a slash", "/"},
	{"a folder", "a/"},
	{"two slashes", "a//b"},
	{"fileblob's sidecar", "out.csv.attrs"},
	{"a folder like a sidecar", "out.csv.attrs/x"},
	{"fileblob's temporary file", "out.csv.18f0a1b2c3d4e5f6.tmp"},
	{"fileblob's escape", "a__0x2f__b"},
	{"our escape", "a=2Fb"},
	{"our escape of a folder", "a="},
	{"our break", "a=-/b"},
	{"our empty", "=_"},
	{"our hash", "=h00112233445566778899aabbccddeeff=/b"},
	{"percent escapes", "..%2f..%2fetc%252fpasswd"},
	{"backslashes", `..\..\windows`},
	{"a query", "a?expires=1&signature=x#y"},
	{"dots and spaces at the ends", " a. . ."},
	{"Windows device and stream", "CON:$DATA"},
	{"wildcards", "*?[]{}"},
	{"emoji", "🎉 résumé.pdf"},
	{"combining marks", "e\u0301\u0301\u0301"},
	{"control characters", "\x01\x1b[31m\x7f\u0085"},
}

func names(t *testing.T, s *storage.Store, _ *clock) {
	keys := map[string]string{}
	for _, test := range hostileNames {
		key := fileKey(test.name)
		require.Empty(t, keys[key], "%s: another name has this key", test.desc)
		keys[key] = test.name
		put, err := s.Put(t.Context(), key, strings.NewReader("this is "+test.name), test.name)
		require.NoError(t, err, test.desc)
		require.Equal(t, test.name, put.Name)
	}
	for _, test := range hostileNames {
		t.Run(test.desc, func(t *testing.T) {
			r, err := s.Get(t.Context(), fileKey(test.name))
			require.NoError(t, err)
			require.NoError(t, r.Close())
			require.Equal(t, test.name, r.Name)
			require.Equal(t, "this is "+test.name, mustGet(t, s, fileKey(test.name)))
			require.Equal(t, 200, fetch(t, s, fileKey(test.name), nil).status)
		})
	}
}
