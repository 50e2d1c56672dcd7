package documents

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// release makes a folder as goreleaser does, with the real program in it, and returns the
// archive's name.
func release(t *testing.T) (folder, archive string) {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	folder = t.TempDir()
	archive = "notebox_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	file, err := os.Create(filepath.Join(folder, archive))
	require.NoError(t, err)
	sum := sha256.New()
	z, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"notebox", 0o755, raw},
		{"man/notebox.1.gz", 0o644, []byte("man")},
		{"completion/notebox", 0o644, []byte("bash")},
		{"completion/_notebox", 0o644, []byte("zsh")},
		{"completion/notebox.fish", 0o644, []byte("fish")},
		{"notebox.service", 0o644, []byte("unit")},
	} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}))
		_, err := w.Write(f.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, file.Close())
	packed, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	sum.Write(packed)
	lines := fmt.Sprintf("%064x  notebox_1.2.3_plan9_mips.tar.gz\n%x  %s\n%064x  %s.sbom.json\n", 1, sum.Sum(nil), archive, 2, archive)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "checksums.txt"), []byte(lines), 0o600))
	return folder, archive
}

// TestInstall: a release is installed from a folder and an address, and nothing of one whose
// sum differs.
func TestInstall(t *testing.T) {
	t.Parallel()
	folder, archive := release(t)
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	install := func(args ...string) (string, error) {
		c := exec.Command("../../../install.sh", args...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, from := range []string{folder, server.URL, folder + "/"} {
		to := t.TempDir()
		out, err := install(from, to)
		require.NoError(t, err, out)
		require.Regexp(t, `(?m)^notebox .*, go1`, out)
		for name, want := range map[string]string{
			"share/man/man1/notebox.1.gz": "man", "share/bash-completion/completions/notebox": "bash",
			"share/zsh/site-functions/_notebox": "zsh", "share/fish/vendor_completions.d/notebox.fish": "fish",
		} {
			raw, err := os.ReadFile(filepath.Join(to, name))
			require.NoError(t, err)
			require.Equal(t, want, string(raw))
		}
		if os.Getuid() == 0 {
			require.FileExists(t, filepath.Join(to, "lib/systemd/system/notebox.service"))
		}
		out, err = install(from, to) // over what is there
		require.NoError(t, err, out)
		require.NoError(t, exec.Command(filepath.Join(to, "bin", "notebox"), "version").Run())
	}

	for _, c := range []struct {
		desc, from, says string
		change           func()
	}{
		{"plain HTTP", "http://example.org/notebox", "only https is safe", func() {}},
		{"a user's name that looks like this machine", "http://127.0.0.1:x@example.org", "only https is safe", func() {}},
		{"no release", t.TempDir(), "checksums.txt is not there", func() {}},
		{"another archive than the sum's", folder, "nothing is installed", func() {
			f, err := os.OpenFile(filepath.Join(folder, archive), os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteString("x")
			require.NoError(t, err)
		}},
		{"none for this machine", folder, "names no archive for", func() {
			lines := strings.Repeat("0", 64) + "  notebox_1.2.3_plan9_mips.tar.gz\n"
			require.NoError(t, os.WriteFile(filepath.Join(folder, "checksums.txt"), []byte(lines), 0o600))
		}},
	} {
		c.change()
		to := t.TempDir()
		out, err := install(c.from, to)
		require.Error(t, err, c.desc)
		require.Contains(t, out, c.says, c.desc)
		left, err := os.ReadDir(to)
		require.NoError(t, err)
		require.Empty(t, left, c.desc)
	}
}

// TestInstallOnAStrictMachine: a umask that lets nobody else read, and a folder of temporary files in
// which no program may run, which is a mount's option and so wants root.
func TestInstallOnAStrictMachine(t *testing.T) {
	t.Parallel()
	folder, _ := release(t)
	to, temporary := t.TempDir(), t.TempDir()
	script := "umask 077; TMPDIR=\"$2\" ./install.sh \"$0\" \"$1\""
	command := []string{"sh", "-ec", script, folder, to, temporary}
	if os.Getuid() == 0 {
		command[2] = "mount -t tmpfs -o noexec none \"$2\"; " + script
		command = append([]string{"unshare", "--mount"}, command...)
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = "../../.."
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == to {
			return err
		}
		info, err := d.Info()
		want := os.FileMode(0o644)
		if d.IsDir() || d.Name() == "notebox" && filepath.Base(filepath.Dir(path)) == "bin" {
			want = 0o755
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		require.NotContains(t, d.Name(), "new", "nothing is left")
		return err
	}))
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestInstallCutShort: a script that came in part, as curl into sh can meet it, does nothing.
func TestInstallCutShort(t *testing.T) {
	t.Parallel()
	folder, _ := release(t)
	script, err := os.ReadFile("../../../install.sh")
	require.NoError(t, err)
	to, temporary := filepath.Join(t.TempDir(), "to"), t.TempDir()
	whole := len(bytes.TrimSpace(script))
	for n := range whole {
		c := exec.Command("sh", "-s", "--", folder, to)
		c.Stdin = bytes.NewReader(script[:n])
		c.Env = append(os.Environ(), "TMPDIR="+temporary)
		out, _ := c.CombinedOutput()
		require.NoDirExists(t, to, "%d bytes: %s", n, out)
		left, err := os.ReadDir(temporary)
		require.NoError(t, err)
		require.Empty(t, left, "%d bytes: %s", n, out)
	}
}
