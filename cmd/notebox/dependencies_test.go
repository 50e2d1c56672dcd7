package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

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
