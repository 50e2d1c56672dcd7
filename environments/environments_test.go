package environments

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// some is as little as an environment.json can have, and a lock.
const some = `{"language": "some", "display_name": "Some", "image": "notebox/some",
	"file_extension": ".some", "kernel": {"name": "some"}, "packages": "requirements.txt"}`

// with is some with more fields.
func with(fields string) string { return strings.Replace(some, "{", "{"+fields+",", 1) }

// sample is a small environment with its harness.
func sample() fstest.MapFS {
	return files(map[string]string{
		"some/environment.json":  some,
		"some/Dockerfile":        "FROM debian:trixie-slim\n",
		"some/requirements.in":   "# what we want\nnumpy\nPy_YAML[fast]>=6  # settings\n\n-c constraints.txt\n",
		"some/requirements.txt":  "numpy==2.1.0 \\\n    --hash=sha256:00\npy-yaml==6.0 ; python_version > '3'\nsix==1.17.0\n",
		"harness/__main__.py":    "print('hello')\n",
		"harness/harness/a.py":   "",
		"harness/harness/b/c.py": "",
		"base/Dockerfile":        "FROM debian:trixie-slim\n",
		"other/Dockerfile":       "FROM scratch\n",
		"supervisor/main.go":     "package main\n",
		"supervisor/wire/a.go":   "package wire\n",
	})
}

func files(contents map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range contents {
		m[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return m
}

func loadOne(m fstest.MapFS, name string) (Environment, error) { return load(m, m, name) }

func TestLoad(t *testing.T) {
	all, err := Load("")
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
	again, err := Load("")
	require.NoError(t, err)
	require.Equal(t, all, again)
}

func TestPackages(t *testing.T) {
	e, err := loadOne(sample(), "some")
	require.NoError(t, err)
	require.Equal(t, []Package{{"numpy", "2.1.0"}, {"py-yaml", "6.0"}}, e.Packages,
		"what was asked for, not what that needs, under its normal name")

	m := sample()
	maps.Copy(m, files(map[string]string{
		"some/environment.json": strings.ReplaceAll(some, "requirements.txt", "package-lock.json"),
		"some/package-lock.json": `{"packages": {"": {"dependencies": {"npm": "^11", "deno": "2"}},
			"node_modules/npm": {"version": "11.1.0"}, "node_modules/deno": {"version": "2.5.0"}, "node_modules/x": {"version": "1"}}}`,
	}))
	e, err = loadOne(m, "some")
	require.NoError(t, err)
	require.Equal(t, []Package{{"deno", "2.5.0"}, {"npm", "11.1.0"}}, e.Packages)
}

func TestNeeds(t *testing.T) {
	m := sample()
	m["some/environment.json"].Data = []byte(with(`"needs": {"memory": "3 GiB", "timeout": 1.5}`))
	e, err := loadOne(m, "some")
	require.NoError(t, err)
	require.Equal(t, Needs{Memory: 3 << 30, Timeout: Seconds(1500 * time.Millisecond)}, e.Needs)
}

// TestTypeScriptIsJavaScript: they have one image, whose kernel does not know which it is.
func TestTypeScriptIsJavaScript(t *testing.T) {
	all, err := Load("")
	require.NoError(t, err)
	byName := map[string]Environment{}
	for _, e := range all {
		byName[e.Name] = e
	}
	javascript, typescript := byName["javascript"], byName["typescript"]
	require.NotEmpty(t, javascript.Entrypoint)
	require.Equal(t, javascript.Image, typescript.Image)
	require.Equal(t, javascript.Kernel, typescript.Kernel)
	require.Equal(t, javascript.Entrypoint, typescript.Entrypoint)
	require.Equal(t, javascript.Dependencies, typescript.Dependencies)
}

// TestHash has the tag change exactly when a file of the environment or of the
// harness does.
func TestHash(t *testing.T) {
	before, err := loadOne(sample(), "some")
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
		{desc: "a module of the harness", change: func(m fstest.MapFS) { m["harness/harness/job/clock.py"] = &fstest.MapFile{} }},
		{desc: "tests", change: func(m fstest.MapFS) { m["some/testdata/cases.json"] = &fstest.MapFile{} }, same: true},
		{desc: "tests of the harness", change: func(m fstest.MapFS) { m["harness/tests/test.py"] = &fstest.MapFile{} }, same: true},
		{desc: "settings of the harness's linters", change: func(m fstest.MapFS) { m["harness/pyproject.toml"] = &fstest.MapFile{} }, same: true},
		{desc: "the supervisor", change: func(m fstest.MapFS) { m["supervisor/main.go"].Data = []byte("package other\n") }},
		{desc: "a package of the supervisor", change: func(m fstest.MapFS) { m["supervisor/wire/b.go"] = &fstest.MapFile{} }},
		{desc: "tests of the supervisor", change: func(m fstest.MapFS) { m["supervisor/wire/a_test.go"] = &fstest.MapFile{} }, same: true},
		{desc: "the base", change: func(m fstest.MapFS) { m["base/Dockerfile"].Data = []byte("FROM busybox\n") }},
		{desc: "a new file of the base", change: func(m fstest.MapFS) { m["base/more.py"] = &fstest.MapFile{} }},
		{desc: "a new file", change: func(m fstest.MapFS) { m["some/fonts.conf"] = &fstest.MapFile{} }},
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
			after, err := loadOne(m, "some")
			require.NoError(t, err)
			require.Equal(t, c.same, before.Image == after.Image, after.Image)
		})
	}
}

func TestHashOfNothing(t *testing.T) {
	m := sample()
	_, err := hashOf(m, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = hashOf(m, "s*")
	require.ErrorIs(t, err, fs.ErrNotExist, "a folder's name is no pattern")
	for _, module := range []string{"harness/__main__.py", "harness/harness/a.py", "harness/harness/b/c.py"} {
		m := sample()
		delete(m, module)
		_, err := hashOf(m, harness)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, path.Join(path.Dir(strings.Replace(module, "b/", "*/", 1)), "*.py"))
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
		{"nothing", map[string]string{"some/environment.json": `{}`}, "language"},
		{"no lock", map[string]string{"some/environment.json": strings.ReplaceAll(some, "requirements", "missing")}, "missing.txt"},
		{"a language that is none", map[string]string{"some/environment.json": strings.ReplaceAll(some, `"some"`, `"so me"`)}, "language"},
		{"an alias that is none", map[string]string{"some/environment.json": with(`"aliases": ["a,b"]`)}, "aliases"},
		{"a media type that is none", map[string]string{"some/environment.json": with(`"media_types": ["lua"]`)}, "media_types"},
		{"an ending without a dot", map[string]string{"some/environment.json": strings.ReplaceAll(some, ".some", "some")}, "file_extension"},
		{"an image with a tag", map[string]string{"some/environment.json": strings.ReplaceAll(some, "notebox/some", "notebox/some:1")}, "image"},
		{"two images", map[string]string{"some/environment.json": with(`"image_of": "other"`)}, "image"},
		{"an entrypoint without its path", map[string]string{"some/environment.json": with(`"entrypoint": "run()"`)}, "entrypoint"},
		{"an unknown notation", map[string]string{"some/environment.json": with(`"dependencies": {"notation": "gem", "installer": "/x"}`)}, "dependencies.notation"},
		{"a prefix that no name has", map[string]string{"some/environment.json": with(`"dependencies": {"notation": "apt", "prefix": "-r", "installer": "/x"}`)}, "dependencies.prefix"},
		{"a prefix of pip's", map[string]string{"some/environment.json": with(`"dependencies": {"notation": "pip", "prefix": "r-", "installer": "/x"}`)}, "dependencies.prefix"},
		{"an installer that is nowhere", map[string]string{"some/environment.json": with(`"dependencies": {"notation": "pip", "installer": "x"}`)}, "dependencies.installer"},
		{"a variable that is none", map[string]string{"some/environment.json": strings.ReplaceAll(some, `"name": "some"`, `"name": "some", "env": {"A B": ""}`)}, "kernel.env"},
		{"a size that is none", map[string]string{"some/environment.json": with(`"needs": {"memory": "much"}`)}, "much"},
		{"less than nothing", map[string]string{"some/environment.json": with(`"needs": {"pids": -1}`)}, "needs"},
		{"a lock of npm without what it is for", map[string]string{
			"some/environment.json":  strings.ReplaceAll(some, "requirements.txt", "package-lock.json"),
			"some/package-lock.json": `{"packages": {"": {"dependencies": {"deno": "2"}}}}`,
		}, "deno is not in package-lock.json"},
		{"a package that is not locked", map[string]string{"some/requirements.in": "numpy\nscipy\n"}, "scipy is not in requirements.txt"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m := sample()
			maps.Copy(m, files(c.with))
			_, err := loadOne(m, "some")
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "environment some")
		})
	}
	_, err := loadOne(sample(), "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestEmbedded finds a file that goes into an image and not into its hash: the
// tag would stay as it was when that file changes.
func TestEmbedded(t *testing.T) {
	here := os.DirFS(".")
	folders, err := fs.Glob(here, "*/Dockerfile")
	require.NoError(t, err)
	require.Contains(t, folders, "jupyter/Dockerfile")
	for _, folder := range append(folders, "harness/x") {
		folder = path.Dir(folder)
		want, err := hashOf(here, folder)
		require.NoError(t, err)
		have, err := hashOf(embedded, folder)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "files have a dot in their name, and lie in no folder of their own")
	}
	_, err = fs.Stat(embedded, "harness/tests")
	require.ErrorIs(t, err, fs.ErrNotExist, "tests are no part of an image")
}

// TestEveryFolderIsComplete has each environment come with its cases.
func TestEveryFolderIsComplete(t *testing.T) {
	all, err := Load("")
	require.NoError(t, err)
	for _, e := range all {
		cases := path.Join(e.Name, "testdata", "cases.json")
		_, err := os.Stat(cases)
		require.NoError(t, err)
		if e.ImageOf == "" {
			_, err := os.Stat(path.Join(e.Name, "Dockerfile"))
			require.NoError(t, err)
		}
	}
}

func TestLoadOwn(t *testing.T) {
	own := func(name, content string) string {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(path.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(path.Join(dir, name, "environment.json"), []byte(content), 0o644))
		return dir
	}
	lua := strings.NewReplacer(`, "packages": "requirements.txt"`, "", "some", "lua").Replace(some)
	all, err := Load(own("lua", lua))
	require.NoError(t, err)
	require.Equal(t, Default, all[0].Name)
	last := all[len(all)-1]
	require.Equal(t, "lua", last.Language)
	require.Regexp(t, `^notebox/lua:[0-9a-f]{16}$`, last.Image)

	for _, c := range []struct{ desc, name, content, says string }{
		{"a name that is taken", Default, lua, `name "jupyter" is jupyter's already`},
		{"a language that is taken", "lua", strings.ReplaceAll(lua, `"language": "lua"`, `"language": "Python"`), `language "Python" is jupyter's already`},
		{"an alias that is taken", "lua", strings.Replace(lua, "{", `{"aliases": ["py"],`, 1), `language "py" is jupyter's already`},
		{"a media type that is taken", "lua", strings.Replace(lua, "{", `{"media_types": ["text/x-python"],`, 1), `is jupyter's already`},
		{"another's image, and there is none", "lua", strings.Replace(lua, `"image": "notebox/lua"`, `"image_of": "lua2"`, 1), `there is no environment "lua2"`},
		{"its own image", "lua", strings.Replace(lua, `"image": "notebox/lua"`, `"image_of": "lua"`, 1), `there is no environment "lua"`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := Load(own(c.name, c.content))
			require.ErrorContains(t, err, c.says)
		})
	}
	all, err = Load(own("python2", strings.NewReplacer(`"image": "notebox/lua"`, `"image_of": "jupyter"`).Replace(lua)))
	require.NoError(t, err)
	require.Equal(t, all[0].Image, all[len(all)-1].Image)
	_, err = Load("/none/such")
	require.ErrorIs(t, err, fs.ErrNotExist)
	all, err = Load(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, Default, all[0].Name, "an empty folder has none")
}

func TestBaseImage(t *testing.T) {
	ref, err := BaseImage()
	require.NoError(t, err)
	require.Regexp(t, `^notebox/base:[0-9a-f]{16}$`, ref)
}

// TestPrefix: an image's installer has the prefix that requests are read with.
func TestPrefix(t *testing.T) {
	all, err := Load("")
	require.NoError(t, err)
	for _, e := range all {
		if e.Dependencies == nil || e.Dependencies.Notation != "apt" || e.ImageOf != "" {
			continue
		}
		var own struct{ Prefix string }
		if raw, err := fs.ReadFile(embedded, e.Name+"/apt.json"); err == nil {
			require.NoError(t, json.Unmarshal(raw, &own))
		}
		require.Equal(t, e.Dependencies.Prefix, own.Prefix, e.Name)
	}
}
