package environments_test

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// entries reads a context: contents by name, and the modes.
func entries(t *testing.T, dir, name, debian string) (contents map[string]string, modes map[string]int64) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, environments.BuildContext(&b, dir, name, []byte("ELF"), debian))
	contents, modes = map[string]string{}, map[string]int64{}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return contents, modes
		}
		require.NoError(t, err)
		require.NotContains(t, contents, h.Name, "each once")
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		contents[h.Name], modes[h.Name] = string(raw), h.Mode
		if folder := filepath.Dir(strings.TrimSuffix(h.Name, "/")); folder != "." {
			require.Contains(t, modes, folder+"/", "a folder comes before what is in it")
		}
	}
}

func TestBuildContext(t *testing.T) {
	t.Parallel()
	contents, modes := entries(t, "", "bash", "")
	for _, name := range []string{"bash/Dockerfile", "bash/environment.json", "base/finish.sh", "base/requirements.txt", "harness/__main__.py", "harness/harness/__init__.py", "harness/supervisor"} {
		require.Contains(t, contents, name)
	}
	for name := range contents {
		require.NotContains(t, name, "testdata")
		require.NotContains(t, name, "_test")
		require.NotContains(t, name, "jupyter/", "another language's")
	}
	require.Equal(t, "ELF", contents["harness/supervisor"])
	require.EqualValues(t, 0o755, modes["harness/supervisor"])
	require.EqualValues(t, 0o644, modes["base/finish.sh"])
	raw, err := os.ReadFile("bash/Dockerfile")
	require.NoError(t, err)
	require.Equal(t, string(raw), contents["bash/Dockerfile"])

	contents, _ = entries(t, "", environments.Base, "")
	require.Contains(t, contents["base/Dockerfile"], "\nFROM debian:trixie-slim\n")
	contents, _ = entries(t, "", environments.Base, "my/debian:1")
	require.Contains(t, contents["base/Dockerfile"], "\nFROM my/debian:1\n")
	require.NotContains(t, contents["base/Dockerfile"], "\nFROM debian")

	own := t.TempDir()
	require.NoError(t, os.MkdirAll(own+"/lua/testdata", 0o700))
	for _, name := range []string{"Dockerfile", "kernel", "testdata/x.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(own, "lua", name), []byte(name), 0o600))
	}
	contents, _ = entries(t, own, "lua", "")
	require.Equal(t, "kernel", contents["lua/kernel"])
	require.Contains(t, contents, "base/finish.sh")
	require.NotContains(t, contents, "lua/testdata/x.txt")
	require.Error(t, environments.BuildContext(io.Discard, own, "none", nil, ""))
}

// TestSupervisorIsCurrent: the supervisor in the program is that of the sources which the
// images' hash is over, to the byte if the compiler is the same.
func TestSupervisorIsCurrent(t *testing.T) {
	t.Parallel()
	for _, arch := range environments.SupervisorArchs() {
		raw, err := environments.Supervisor(arch)
		require.NoError(t, err)
		about, err := buildinfo.Read(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Equal(t, "notebox/environments/supervisor", about.Path)
		if about.GoVersion != runtime.Version() || arch != runtime.GOARCH { // which would be compiled for long
			continue
		}
		file := filepath.Join(t.TempDir(), "supervisor")
		c := exec.Command("go", "run", "./scripts/supervisor", "-arch", arch, "-o", file)
		c.Dir = ".."
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		fresh, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(fresh, raw), "%s: make supervisor", arch)
	}
	_, err := environments.Supervisor("mips")
	require.EqualError(t, err, `no supervisor of cells for the processor "mips"; there is: amd64, arm64`)
}
