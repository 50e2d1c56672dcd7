package environments

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// sample is a small environment with its harness.
func sample() fstest.MapFS {
	return files(map[string]string{
		"some/environment.json": `{"language":"python","image":"notebox/some","packages":"requirements.txt"}`,
		"some/Dockerfile":       "FROM debian:trixie-slim\n",
		"some/requirements.in":  "# what we want\nnumpy\nPy_YAML[fast]>=6  # settings\n\n-c constraints.txt\n",
		"some/requirements.txt": "numpy==2.1.0 \\\n    --hash=sha256:00\npy-yaml==6.0 ; python_version > '3'\nsix==1.17.0\n",
		"harness/__main__.py":   "print('hello')\n",
		"other/Dockerfile":      "FROM scratch\n",
	})
}

func files(contents map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range contents {
		m[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return m
}

func TestLoad(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	e := all[0]
	require.Equal(t, Default, e.Name, "the default comes first")
	require.Equal(t, "python", e.Language)
	require.Regexp(t, regexp.MustCompile(`^notebox/jupyter:[0-9a-f]{16}$`), e.Image)
	require.NotEmpty(t, e.DisplayName)
	require.NotEmpty(t, e.Kernel)
	require.NotEmpty(t, e.FileExtension)
	require.NotEmpty(t, e.MediaTypes)
	require.NotEmpty(t, e.Notes)
	versions := map[string]string{}
	for _, p := range e.Packages {
		require.Regexp(t, `^[a-z0-9][a-z0-9.-]*$`, p.Name)
		require.Regexp(t, `^[0-9][0-9a-z.+!-]*$`, p.Version, p.Name)
		require.NotContains(t, versions, p.Name, "once each")
		versions[p.Name] = p.Version
	}
	for _, name := range []string{"numpy", "pandas", "matplotlib", "nbconvert", "ipykernel", "opencv-python-headless", "pyyaml"} {
		require.Contains(t, versions, name)
	}
	again, err := Load()
	require.NoError(t, err)
	require.Equal(t, all, again)
}

func TestPackages(t *testing.T) {
	e, err := load(sample(), "some")
	require.NoError(t, err)
	require.Equal(t, []Package{{"numpy", "2.1.0"}, {"py-yaml", "6.0"}}, e.Packages,
		"what was asked for, not what that needs, under its normal name")
}

// TestHash has the tag change exactly when a file of the environment or of the
// harness does.
func TestHash(t *testing.T) {
	before, err := load(sample(), "some")
	require.NoError(t, err)
	for _, c := range []struct {
		desc   string
		change func(fstest.MapFS)
		same   bool
	}{
		{desc: "nothing", change: func(fstest.MapFS) {}, same: true},
		{desc: "another environment", change: func(m fstest.MapFS) { m["other/Dockerfile"].Data = []byte("FROM busybox\n") }, same: true},
		{desc: "a file beside the folders", change: func(m fstest.MapFS) { m["README.md"] = &fstest.MapFile{} }, same: true},
		{desc: "modes and times", change: func(m fstest.MapFS) { m["some/Dockerfile"].Mode = 0o600 }, same: true},
		{desc: "a folder whose name begins the same", change: func(m fstest.MapFS) { m["something/x"] = &fstest.MapFile{} }, same: true},
		{desc: "the Dockerfile", change: func(m fstest.MapFS) { m["some/Dockerfile"].Data = []byte("FROM busybox\n") }},
		{desc: "one byte of the lock", change: func(m fstest.MapFS) { m["some/requirements.txt"].Data[20] ^= 1 }},
		{desc: "the harness", change: func(m fstest.MapFS) { m["harness/__main__.py"].Data = []byte("print('bye')\n") }},
		{desc: "a new file", change: func(m fstest.MapFS) { m["some/fonts.conf"] = &fstest.MapFile{} }},
		{desc: "a new file in a folder", change: func(m fstest.MapFS) { m["harness/more/x.py"] = &fstest.MapFile{} }},
		{desc: "a file is gone", change: func(m fstest.MapFS) { delete(m, "some/Dockerfile") }},
		{desc: "a file has another name", change: func(m fstest.MapFS) { rename(m, "some/Dockerfile", "some/Containerfile") }},
		{desc: "a file has moved to the harness", change: func(m fstest.MapFS) { rename(m, "some/Dockerfile", "harness/Dockerfile") }},
		{desc: "text goes from the end of a file to the next", change: func(m fstest.MapFS) {
			m["some/Dockerfile"].Data = []byte("FROM debian:trixie-slim")
			m["some/environment.json"].Data = append([]byte("\n"), m["some/environment.json"].Data...)
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m := sample()
			c.change(m)
			after, err := load(m, "some")
			require.NoError(t, err)
			require.Equal(t, c.same, before.Image == after.Image, after.Image)
		})
	}
}

func rename(m fstest.MapFS, from, to string) {
	m[to] = m[from]
	delete(m, from)
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		desc string
		with map[string]string
		says string
	}{
		{"an unknown field", map[string]string{"some/environment.json": `{"langauge":"python"}`}, `unknown field "langauge"`},
		{"another type", map[string]string{"some/environment.json": `{"aliases":"py"}`}, "environment.json"},
		{"no JSON", map[string]string{"some/environment.json": ``}, "environment.json"},
		{"more than one value", map[string]string{"some/environment.json": `{"image":"a"} {}`}, "environment.json"},
		{"a computed field", map[string]string{"some/environment.json": `{"name":"x"}`}, "unknown field"},
		{"no lock", map[string]string{"some/environment.json": `{"packages":"missing.txt"}`}, "missing.txt"},
		{"a package that is not locked", map[string]string{"some/requirements.in": "numpy\nscipy\n"}, "scipy is not in requirements.txt"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m := sample()
			maps.Copy(m, files(c.with))
			_, err := load(m, "some")
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "environment some")
		})
	}
	_, err := load(sample(), "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestEmbedded finds a file that goes into an image and not into its hash: the
// tag would stay as it was when that file changes.
func TestEmbedded(t *testing.T) {
	here := os.DirFS(".")
	scripts, err := fs.Glob(here, "harness/*.py")
	require.NoError(t, err)
	require.Contains(t, scripts, "harness/__main__.py")
	err = fs.WalkDir(here, "jupyter", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			scripts = append(scripts, name)
		}
		return err
	})
	require.NoError(t, err)
	for _, name := range scripts {
		want, err := fs.ReadFile(here, name)
		require.NoError(t, err)
		have, err := fs.ReadFile(embedded, name)
		require.NoError(t, err)
		require.Equal(t, want, have, name)
	}
	_, err = fs.Stat(embedded, "harness/tests")
	require.ErrorIs(t, err, fs.ErrNotExist, "tests are no part of an image")
}
