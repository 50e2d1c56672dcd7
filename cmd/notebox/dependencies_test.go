package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/dependencies"
	"notebox/environments"
	"notebox/runner"
	"notebox/runner/docker"
)

// cut is a network without names.
type cut struct{}

func (cut) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("the registry is cut off")
}

// installReply is what a reply says of packages.
type installReply struct {
	Status  string
	Text    string
	Hint    string
	Error   *struct{ Name, Message string }
	Install *struct {
		Packages []struct{ Name, Version string }
		Cached   bool
	}
}

// withPackages sends code and returns the answer, and how long it took.
func withPackages(t *testing.T, p *program, code string, packages ...string) (status int, r installReply, raw string, took time.Duration) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "dependencies": packages})
	require.NoError(t, err)
	began := time.Now()
	status, answer := post(t, p.url()+"/v1/execute", "application/json", body)
	took = time.Since(began)
	if status == http.StatusOK {
		require.NoError(t, json.Unmarshal(answer, &r))
	}
	return status, r, string(answer), took
}

// TestDependencies asks the registry for polars, once, and then cuts it off.
func TestDependencies(t *testing.T) {
	folder := t.TempDir()
	id := serviceID + "-dependencies"
	begin := func(pool string, change func(*settings)) (*program, func()) {
		p, stop, err := startWith(folder, change, "--service-id", id, "--pool-size", pool, "--pool-max", pool)
		require.NoError(t, err)
		return p, func() { require.NoError(t, stop()) }
	}
	p, stop := begin("0", func(*settings) {})
	t.Cleanup(func() { removeLayers(t, p) })

	const code = "import polars; print(polars.__version__)"
	var first installReply
	for i := range 3 {
		status, r, raw, took := withPackages(t, p, code, "polars==1.*")
		require.Equal(t, 200, status, raw)
		require.Equal(t, "ok", r.Status, raw)
		require.True(t, strings.HasPrefix(r.Text, "1."), r.Text)
		require.Equal(t, i > 0, r.Install.Cached)
		require.Equal(t, "polars", r.Install.Packages[0].Name)
		t.Logf("polars, time %d: %s", i+1, took)
		if i == 0 {
			first = r
		}
		require.Equal(t, first.Install.Packages, r.Install.Packages)
	}
	t.Log("a fresh sandbox each: what a layer costs beside the language's own image")
	requireAsFast(t, p, func() {}, "1+1", "polars==1.*")

	status, r, raw, _ := withPackages(t, p, "print('not run')", "polars==0.0.0.1")
	require.Equal(t, 200, status, raw)
	require.Equal(t, "error", r.Status)
	require.Equal(t, "Unresolvable", r.Error.Name)
	require.Contains(t, r.Text, "polars==0.0.0.1")
	require.NotContains(t, r.Text, "not run")
	require.NotEmpty(t, r.Hint)
	status, r, raw, _ = withPackages(t, p, "import numpy; print('there')", "numpy")
	require.Equal(t, 200, status, raw)
	require.Empty(t, r.Install.Packages, "it is in the image")
	stop()

	p, stop = begin("1", func(s *settings) { s.dependencies.resolver = cut{} })
	defer stop()
	for _, known := range []string{"polars==1.*", "numpy"} {
		status, r, raw, _ = withPackages(t, p, "print('there')", known)
		require.Equal(t, 200, status, raw)
		require.Equal(t, "there\n", r.Text)
		require.True(t, r.Install.Cached)
	}
	t.Log("a sandbox that waits each")
	requireAsFast(t, p, func() {
		for end := time.Now().Add(time.Minute); p.pool.Stats().Warm < 2; {
			require.True(t, time.Now().Before(end), "there is none")
			withPackages(t, p, code, "polars==1.*") // one that did not last comes again by a run
			for range 500 {
				if p.pool.Stats().Warm < 2 {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
	}, code, "polars==1.*")
	for range 2 {
		status, _, raw, took := withPackages(t, p, "1", "iniconfig")
		require.Equal(t, 503, status, raw)
		require.Contains(t, raw, "the package registry cannot be reached")
		require.Less(t, took, 5*time.Second)
	}
	for _, name := range []string{"layers", "uploads"} {
		left, err := os.ReadDir(filepath.Join(folder, "state", name))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// requireAsFast requires that code with packages takes at most 1.3 times as long as 1+1
// without: the fastest of several runs of both in turn, as others use the machine too. ready
// returns when the next run may begin.
func requireAsFast(t *testing.T, p *program, ready func(), code string, packages ...string) {
	t.Helper()
	fastest := func(so time.Duration, code string, packages ...string) time.Duration {
		ready()
		status, r, raw, took := withPackages(t, p, code, packages...)
		require.Equal(t, 200, status, raw)
		require.Equal(t, "ok", r.Status, raw)
		return min(so, took)
	}
	with, without := time.Hour, time.Hour
	for round := 0; round < 4 || round < 16 && with > without*13/10; round++ {
		with, without = fastest(with, code, packages...), fastest(without, "1+1")
	}
	t.Logf("%s with packages, %s without", with, without)
	require.LessOrEqual(t, with, without*13/10)
}

// TestSigkillInMidInstall: nothing is left of an installation that a service was killed
// over when it is back, and the set can be had.
func TestSigkillInMidInstall(t *testing.T) {
	t.Parallel()
	id, folder := serviceID+"-install", t.TempDir()
	removeAtEnd(t, id)
	engine, err := docker.New(docker.Options{ServiceID: id, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeImages(engine.Images())) })

	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	index := serverAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") {
			select {
			case asked <- struct{}{}:
			default:
			}
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
		servePackage(w, r)
	}))
	index.Start()
	conf := filepath.Join(folder, "pip.conf")
	require.NoError(t, os.WriteFile(conf, []byte("[global]\nindex-url = "+index.URL+"/simple\ntrusted-host = "+outsideHost+"\n"), 0o600))
	flags := []string{"--pool-size", "0", "--dependencies-pip-conf", conf}
	const body = `{"code": "import notebox_probe; print(notebox_probe.ANSWER)", "dependencies": ["notebox-probe"]}`

	p := launch(t, id, folder, flags...)
	lost := make(chan struct{})
	go func() { // the answer will be none
		defer close(lost)
		if a, err := http.Post(p.URL+"/v1/execute", "application/json", strings.NewReader(body)); err == nil {
			a.Body.Close()
		}
	}()
	select {
	case <-asked:
	case <-lost:
		require.Fail(t, "the installer asks for no package")
	}
	before := sandboxes(t, id)
	require.Len(t, before, 1, "the installer's")
	p.Kill()
	<-lost
	archives := filepath.Join(folder, "state", "layers")
	require.NoError(t, os.WriteFile(filepath.Join(archives, "layer-1"), []byte("half an archive"), 0o600))

	p = launch(t, id, folder, flags...)
	require.NotContains(t, sandboxes(t, id), before[0])
	left, err := os.ReadDir(archives)
	require.NoError(t, err)
	require.Empty(t, left)
	close(goOn)
	for _, cached := range []bool{false, true} {
		status, raw := post(t, p.URL+"/v1/execute", "application/json", []byte(body))
		require.Equal(t, http.StatusOK, status, "%s", raw)
		var r installReply
		require.NoError(t, json.Unmarshal(raw, &r))
		require.Equal(t, "42\n", r.Text, "%s", raw)
		require.Equal(t, cached, r.Install.Cached)
	}
	left, err = os.ReadDir(archives)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, sandboxes(t, id))
}

// TestDependenciesOff: what a process was killed over goes also where there are to be no
// packages any more, and what it has kept is named.
func TestDependenciesOff(t *testing.T) {
	folder := t.TempDir()
	archives := filepath.Join(folder, "state", "layers")
	require.NoError(t, os.MkdirAll(archives, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(archives, "layer-1"), nil, 0o600))
	id := serviceID + "-off"
	engine, err := docker.New(docker.Options{ServiceID: id, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	images := engine.Images()
	all, err := environments.Load("")
	require.NoError(t, err)
	var empty bytes.Buffer
	require.NoError(t, tar.NewWriter(&empty).Close())
	_, err = images.Commit(t.Context(), all[0].Image, "abc", &empty, dependencies.Image{Bytes: 512})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeImages(images)) })

	_, stop, err := start(folder, "--service-id", id, "--pool-size", "0", "--dependencies", "off")
	require.NoError(t, err)
	require.NoError(t, stop())
	require.NoDirExists(t, archives)
	log, err := os.ReadFile(folder + "/log")
	require.NoError(t, err)
	require.Contains(t, string(log), "layers=1 bytes=512 remove=\"docker image ls")
	_, command, _ := strings.Cut(string(log), "remove=")
	command, _, _ = strings.Cut(command, "\n")
	command, err = strconv.Unquote(command)
	require.NoError(t, err)
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := images.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
}

// removeLayers takes the images away that a service has kept.
func removeLayers(t *testing.T, p *program) {
	require.NoError(t, removeImages(p.engine.Images()))
}

func removeImages(images *docker.Images) error {
	all, err := images.List(context.Background())
	for _, image := range all {
		for _, name := range image.Names {
			if name != image.Layer {
				err = errors.Join(err, images.Forget(context.Background(), name))
			}
		}
		if image.Layer != "" {
			err = errors.Join(err, images.Remove(context.Background(), image))
		}
	}
	return err
}

func TestDependencyFlags(t *testing.T) {
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--dependencies", "maybe"}, "--dependencies (on or off)"},
		{[]string{"--dependencies-timeout", "0s"}, "--dependencies-timeout"},
		{[]string{"--dependencies-max-layers", "0"}, "--dependencies-max-layers"},
		{[]string{"--dependencies-max-size", "2g", "--dependencies-max-total-size", "1g"}, "--dependencies-max-total-size"},
		{[]string{"--dependencies-installs", "0"}, "--dependencies-installs"},
		{[]string{"--dependencies-allow", "polars,six==1.*"}, "--dependencies-allow: \"six==1.*\" is not the name of a package"},
		{[]string{"--dependencies-hosts", "files.test:443,*.test:443"}, "--dependencies-hosts"},
	} {
		_, _, err := start(t.TempDir(), c.flags...)
		require.ErrorContains(t, err, c.says)
	}
}

// TestDependencyLimits: all installers together leave the host some memory.
func TestDependencyLimits(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		desc     string
		installs int
		memory   int64
		want     int64
	}{
		{"as much as a set needs", 2, 64 * gib, 3*gib + gib/2 + gib},
		{"one on a small host", 1, 4 * gib, 3 * gib},
		{"two on a small host", 2, 4 * gib, 3 * gib / 2},
		{"no less than a run", 8, 4 * gib, gib},
	} {
		s := dependencySettings{maxSize: gib, installs: c.installs}
		got := s.limits(runner.Limits{Memory: gib, TmpSize: gib / 2, DataSize: gib / 4}, c.memory)
		require.Equal(t, c.want, got.Memory, c.desc)
		require.Equal(t, max(gib/4, c.want-gib), got.DataSize, c.desc)
	}
}

// TestDependencySettings: what is not named is this host's, and off is none.
func TestDependencySettings(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("PIP_CONFIG_FILE", "")
	t.Setenv("NPM_CONFIG_USERCONFIG", "")
	t.Setenv("npm_config_userconfig", "")
	t.Setenv("NPM_CONFIG_REGISTRY", "")
	t.Setenv("npm_config_registry", "")
	t.Setenv("PIP_INDEX_URL", "")
	t.Setenv("PIP_EXTRA_INDEX_URL", "")
	write := func(name, content string) string {
		name = filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		return name
	}
	write(".config/pip/pip.conf", "[global]\n")
	write(".npmrc", "registry=x\n")
	own := write("own.conf", "own")
	for _, c := range []struct {
		desc     string
		settings dependencySettings
		want     map[string]string
	}{
		{"the host's", dependencySettings{}, map[string]string{"pip.conf": "[global]\n", "npmrc": "registry=x\n"}},
		{"none", dependencySettings{pipConf: off, npmrc: off, sources: off}, map[string]string{}},
		{"others", dependencySettings{pipConf: own, npmrc: own, sources: own}, map[string]string{"pip.conf": "own", "npmrc": "own", "sources.list": "own"}},
	} {
		all, err := c.settings.files()
		require.NoError(t, err, c.desc)
		got := map[string]string{}
		for name, content := range all {
			got[name] = string(content)
		}
		require.Equal(t, c.want, got, c.desc)
	}
	_, err := (&dependencySettings{npmrc: home + "/none"}).files()
	require.ErrorContains(t, err, "--dependencies-npmrc")
	_, err = (&dependencySettings{pipConf: write("large", strings.Repeat("x", maxSettings+1))}).files()
	require.ErrorContains(t, err, "larger than")
	_, err = (&dependencySettings{ca: own}).trusted()
	require.ErrorContains(t, err, "--dependencies-ca")
	none, err := (&dependencySettings{ca: off}).trusted()
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestHostSettings: what is taken of this host is what its own clients would.
func TestHostSettings(t *testing.T) {
	for _, c := range []struct {
		desc     string
		files    map[string]string // below the home folder
		env      map[string]string
		settings dependencySettings
		want     map[string]string
	}{
		{desc: "none", want: map[string]string{}},
		{
			desc: "no home: nothing of the working directory", files: map[string]string{"pip/pip.conf": "p", ".pip/pip.conf": "p", ".npmrc": "n"},
			env: map[string]string{"HOME": "", "XDG_CONFIG_HOME": ""}, want: map[string]string{},
		},
		{
			desc: "everybody's", files: map[string]string{"etc/pip.conf": "p", "etc/npmrc": "n"},
			want: map[string]string{"pip.conf": "p", "npmrc": "n"},
		},
		{
			desc: "pip's variable for none", files: map[string]string{".pip/pip.conf": "p"},
			env: map[string]string{"PIP_CONFIG_FILE": os.DevNull}, want: map[string]string{},
		},
		{
			desc: "variables for files that are away", files: map[string]string{".pip/pip.conf": "p", ".npmrc": "n"},
			env: map[string]string{"PIP_CONFIG_FILE": "/none", "NPM_CONFIG_USERCONFIG": "/none"}, want: map[string]string{},
		},
		{
			desc: "variables for others", files: map[string]string{".pip/pip.conf": "p", "other": "o"},
			env:  map[string]string{"PIP_CONFIG_FILE": "other", "npm_config_userconfig": "other"},
			want: map[string]string{"pip.conf": "o", "npmrc": "o"},
		},
		{
			desc: "npm's names", files: map[string]string{".npmrc": "a=${SET}\nb=${UNSET}\nc=${UNSET?}\nd=\\${SET}\ne=\\\\${SET}\nf=$SET ${}\n"},
			env:  map[string]string{"SET": "${SET}x"},
			want: map[string]string{"npmrc": "a=${SET}x\nb=${UNSET}\nc=\nd=${SET}\ne=\\${SET}x\nf=$SET ${}\n"},
		},
		{
			desc: "pip's indexes alone", env: map[string]string{"PIP_INDEX_URL": "https://a/", "PIP_EXTRA_INDEX_URL": "https://b/  https://c/"},
			want: map[string]string{"pip.conf": "[global]\nindex-url = https://a/\nextra-index-url = https://b/\n    https://c/\n"},
		},
		{
			desc:  "pip's index over its file's",
			files: map[string]string{".pip/pip.conf": "[install]\nINDEX_URL: https://x/\n[global]\ntimeout = 5\nextra-index-url =\n    https://y/\n\n    https://z/\nindex-url=https://w/\n[list]\nindex-url=https://v/\n"},
			env:   map[string]string{"PIP_INDEX_URL": "https://a/", "PIP_EXTRA_INDEX_URL": "https://b/"},
			want: map[string]string{
				"pip.conf": "[install]\n[global]\nindex-url = https://a/\nextra-index-url = https://b/\ntimeout = 5\n[list]\nindex-url=https://v/\n",
			},
		},
		{
			desc: "not over the operator's", env: map[string]string{"PIP_INDEX_URL": "https://a/", "NPM_CONFIG_REGISTRY": "https://b/"},
			settings: dependencySettings{pipConf: off, npmrc: off}, want: map[string]string{},
		},
		{
			desc: "npm's registries over its file's", files: map[string]string{".npmrc": "registry=https://x/\n@a:registry=https://y/"},
			env:  map[string]string{"NPM_CONFIG_REGISTRY": "https://a/", "npm_config_//a/:_authToken": "secret", "npm_config_cache": "/tmp"},
			want: map[string]string{"npmrc": "registry=https://x/\n@a:registry=https://y/\nregistry=https://a/\n//a/:_authToken=secret\n"},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			home := t.TempDir()
			t.Chdir(home)
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", home)
			for _, name := range []string{"PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "NPM_CONFIG_REGISTRY", "npm_config_registry", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"} {
				t.Setenv(name, "")
			}
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			for name, content := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
				require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
			}
			c.settings.etc = filepath.Join(home, "etc")
			all, err := c.settings.files()
			require.NoError(t, err)
			got := map[string]string{}
			for name, content := range all {
				got[name] = string(content)
			}
			require.Equal(t, c.want, got)
		})
	}
}
