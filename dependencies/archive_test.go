package dependencies

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// packed is an archive of these entries, with contents by name.
func packed(t testing.TB, contents map[string]string, entries ...tar.Header) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		h.Size = int64(len(contents[h.Name]))
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		require.NoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, contents[h.Name][:h.Size])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// unpacked reads what rewrite has written: "name" or "name -> target", and checks what
// holds for all.
func unpacked(t testing.TB, raw []byte) (names []string) {
	r := tar.NewReader(bytes.NewReader(raw))
	folders := map[string]bool{".": true}
	for {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		require.NoError(t, err)
		name := strings.TrimSuffix(h.Name, "/")
		require.True(t, fs.ValidPath(name) && name != ".", "%q", h.Name)
		require.True(t, folders[path.Dir(name)], "%q comes before its folder", name)
		require.Zero(t, h.Uid+h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		require.True(t, h.ModTime.Equal(time.Unix(0, 0)))
		require.Contains(t, []int64{0o755, 0o644, 0o777}, h.Mode)
		for key := range h.PAXRecords {
			require.Contains(t, []string{"path", "linkpath", "size"}, key)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			folders[name] = true
			name += "/"
		case tar.TypeSymlink:
			require.True(t, fs.ValidPath(path.Join(path.Dir(name), h.Linkname)), "%q", h.Linkname)
			name += " -> " + h.Linkname
		default:
			require.Equal(t, byte(tar.TypeReg), h.Typeflag)
		}
		names = append(names, name)
	}
}

func TestRewrite(t *testing.T) {
	long := strings.Repeat("n", 200)
	contents := map[string]string{"python/a.py": "a", "bin/x": "#!", "deep/er/f": "f", "./dot": "d", long: "l"}
	in := packed(t, contents,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeDir, Name: "python/", Mode: 0o7777, Uid: 5, Uname: "u"},
		tar.Header{Typeflag: tar.TypeReg, Name: "python/a.py", Mode: 0o600, ModTime: time.Now(), Gid: 7},
		tar.Header{Typeflag: tar.TypeReg, Name: "bin/x", Mode: 0o6711, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/y", Linkname: "../python/a.py"},
		tar.Header{Typeflag: tar.TypeReg, Name: "deep/er/f", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeDir, Name: "deep", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeReg, Name: "./dot", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeReg, Name: long, Mode: 0o644},
	)
	var out bytes.Buffer
	bytes, err := rewrite(&out, strings.NewReader(string(in)+"what follows"), 10_000)
	require.NoError(t, err)
	require.EqualValues(t, 6+10*entryBytes, bytes)
	require.Equal(t, []string{
		"python/", "python/a.py", "bin/", "bin/x", "bin/y -> ../python/a.py", "deep/", "deep/er/", "deep/er/f", "dot", long,
	}, unpacked(t, out.Bytes()))
}

func TestRewriteRefuses(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	for _, c := range []struct {
		desc    string
		entries []tar.Header
	}{
		{"a name that leads out", []tar.Header{file("../x")}},
		{"one that does on its way", []tar.Header{file("a/../../x")}},
		{"an absolute one", []tar.Header{file("/etc/passwd")}},
		{"a control character", []tar.Header{file("a\nb")}},
		{"an endless one", []tar.Header{file(strings.Repeat("x/", 600) + "x")}},
		{"a part that no file system has", []tar.Header{file(strings.Repeat("x", 300))}},
		{"the folder itself as a file", []tar.Header{file(".")}},
		{"the folder itself as a link", []tar.Header{link(".", "x")}},
		{"twice", []tar.Header{file("a"), file("a")}},
		{"a file, then a link", []tar.Header{file("a"), link("a", "b")}},
		{"a folder, then a file", []tar.Header{file("a/b"), file("a")}},
		{"below a file", []tar.Header{file("a"), file("a/b")}},
		{"below a link", []tar.Header{link("a", "b"), file("a/b")}},
		{"a link out", []tar.Header{link("a", "../b")}},
		{"a link far out", []tar.Header{link("a/b/c", "../../../b")}},
		{"an absolute link", []tar.Header{link("a", "/etc")}},
		{"a link up after it went down", []tar.Header{link("a/b", "c/../d")}},
		{"an empty link", []tar.Header{link("a", "")}},
		{"a hard link", []tar.Header{file("a"), {Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}}},
		{"a device", []tar.Header{{Typeflag: tar.TypeChar, Name: "a", Devmajor: 1}}},
		{"a whiteout", []tar.Header{file(".wh.python")}},
		{"one of all that is there", []tar.Header{file("a/.wh..wh..opq")}},
		{"one as a folder", []tar.Header{file(".wh.a/b")}},
		{"a link to one", []tar.Header{link("a", ".wh.b")}},
		{"a pipe", []tar.Header{{Typeflag: tar.TypeFifo, Name: "a"}}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := rewrite(io.Discard, bytes.NewReader(packed(t, nil, c.entries...)), 1<<20)
			require.Error(t, err)
			require.NotErrorIs(t, err, errTooLarge)
		})
	}
	big := packed(t, map[string]string{"a": strings.Repeat("x", 600), "b": strings.Repeat("x", 600)}, file("a"), file("b"))
	_, err := rewrite(io.Discard, bytes.NewReader(big), 2*entryBytes+1199)
	require.ErrorIs(t, err, errTooLarge)
	_, err = rewrite(io.Discard, bytes.NewReader(big), 2*entryBytes+1200)
	require.NoError(t, err)
	_, err = rewrite(io.Discard, bytes.NewReader(big[:700]), 10000)
	require.Error(t, err, "cut off")
	_, err = rewrite(io.Discard, strings.NewReader(strings.Repeat("no archive", 200)), 10000)
	require.Error(t, err)
}

// TestRewriteBounds has entries be bounded that have no contents.
func TestRewriteBounds(t *testing.T) {
	long := strings.Repeat(strings.Repeat("n", 240)+"/", 4)
	for _, c := range []struct {
		desc  string
		count int
		name  string
		most  int64
		want  error
	}{
		{"empty files", 3, "", 3 * entryBytes, nil},
		{"too many of them", 4, "", 3 * entryBytes, errTooLarge},
		{"too many long names", 18_000, long, 1 << 30, errTooLarge},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var headers []tar.Header
			for i := range c.count {
				headers = append(headers, regular(fmt.Sprint(c.name, i)))
			}
			_, err := rewrite(io.Discard, bytes.NewReader(packed(t, nil, headers...)), c.most)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// FuzzRewrite has whatever comes out be what unpacked checks.
func FuzzRewrite(f *testing.F) {
	f.Add(packed(f, map[string]string{"a/b": "content"}, tar.Header{Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "a/c", Linkname: "./b"}, tar.Header{Typeflag: tar.TypeDir, Name: "d/"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		if _, err := rewrite(&out, bytes.NewReader(raw), 1<<16); err == nil {
			unpacked(t, out.Bytes())
		}
	})
}
