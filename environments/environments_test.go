package environments

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const description = `{"language": "python", "image": "notebox/a", "packages": "requirements.txt"}`

func files() fstest.MapFS {
	return fstest.MapFS{
		"a/environment.json":  {Data: []byte(description)},
		"a/Dockerfile":        {Data: []byte("FROM x")},
		"a/requirements.in":   {Data: []byte("# what for\nPandas\nscikit_learn[extra]>=1\n")},
		"a/requirements.txt":  {Data: []byte("numpy==2.0 \\\n    --hash=sha256:00\npandas==3.1.1 \\\nscikit-learn==1.9 ; x\n")},
		"harness/__main__.py": {Data: []byte("print()")},
	}
}

func TestLoad(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	e := all[0]
	require.Equal(t, Default, e.Name)
	require.Equal(t, "python", e.Language)
	require.Regexp(t, `^notebox/jupyter:[0-9a-f]{16}$`, e.Image)
	require.NotEmpty(t, e.Notes)
	for _, p := range e.Packages {
		require.NotEmpty(t, p.Version, p.Name)
	}
	_, err = fs.Stat(embedded, "harness/__main__.py")
	require.NoError(t, err, "a name that begins with _ is embedded too")
	_, err = fs.Stat(embedded, "harness/tests")
	require.ErrorIs(t, err, fs.ErrNotExist, "tests are no part of the image")
}

func TestPackages(t *testing.T) {
	e, err := load(files(), "a")
	require.NoError(t, err)
	require.Equal(t, []Package{{"pandas", "3.1.1"}, {"scikit-learn", "1.9"}}, e.Packages)
}

// TestTag changes exactly when a file of the folder or of the harness does.
func TestTag(t *testing.T) {
	tag := func(change func(fstest.MapFS)) string {
		f := files()
		change(f)
		e, err := load(f, "a")
		require.NoError(t, err)
		return e.Image
	}
	same := tag(func(fstest.MapFS) {})
	require.Equal(t, same, tag(func(f fstest.MapFS) { f["b/environment.json"] = &fstest.MapFile{Data: []byte("{}")} }))
	for desc, change := range map[string]func(fstest.MapFS){
		"a file's content":     func(f fstest.MapFS) { f["a/Dockerfile"].Data = []byte("FROM y") },
		"the harness":          func(f fstest.MapFS) { f["harness/__main__.py"].Data = []byte("print(1)") },
		"a new file":           func(f fstest.MapFS) { f["a/new"] = &fstest.MapFile{} },
		"a name":               func(f fstest.MapFS) { f["a/Dockerfile2"] = f["a/Dockerfile"]; delete(f, "a/Dockerfile") },
		"bytes that only move": func(f fstest.MapFS) { f["a/Dockerfile"].Data = nil; f["a/DockerfileFROM x"] = &fstest.MapFile{} },
	} {
		require.NotEqual(t, same, tag(change), desc)
	}
}

func TestWrongDescriptions(t *testing.T) {
	for _, c := range []struct{ desc, file, content, message string }{
		{"no JSON", "a/environment.json", "{", "environment.json"},
		{"an unknown field", "a/environment.json", `{"lang": "x"}`, "lang"},
		{"a package that is not locked", "a/requirements.in", "polars", "polars"},
	} {
		f := files()
		f[c.file].Data = []byte(c.content)
		_, err := load(f, "a")
		require.ErrorContains(t, err, c.message, c.desc)
	}
	_, err := load(files(), "none")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.True(t, strings.HasPrefix(err.Error(), "environment none"))
}
