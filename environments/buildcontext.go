package environments

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// DebianImage is what the base of all images is made from.
const DebianImage = "debian:trixie-slim"

// Base is the name of the base's folder, which BuildContext takes for an environment's.
const Base = base

// Supervisors are compiled before the program is (make supervisor), or are not there.
//
//go:embed supervisor/built
var supervisors embed.FS

// SupervisorArchs are the processors that there is a supervisor for, as Go and Docker name
// them.
func SupervisorArchs() []string { return []string{"amd64", "arm64"} }

// SupervisorFile is the name of the compiled supervisor in supervisor/built. It changes when
// the sources do.
func SupervisorFile(arch string) (string, error) {
	sum, err := hash(embedded, supervisor)
	return "linux-" + arch + "-" + sum + ".gz", err
}

// Supervisor returns the program that is in this one. It is an error if that is not there, or
// was compiled from other sources than the images' hash is over.
func Supervisor(arch string) ([]byte, error) {
	if !slices.Contains(SupervisorArchs(), arch) {
		return nil, fmt.Errorf("no supervisor of cells for the processor %q; there is: %s", arch, strings.Join(SupervisorArchs(), ", "))
	}
	name, err := SupervisorFile(arch)
	if err != nil {
		return nil, err
	}
	raw, err := supervisors.ReadFile(path.Join(supervisor, "built", name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this program was compiled without the supervisor of cells, which its releases have: name one by --supervisor")
	}
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(z)
}

// BuildContext writes the tar file that an image is built from: what its hash is over, and
// the program of the supervisor. dir is a folder of the operator's own environments, or "". The
// image of Base has debian as the image that it is made from, DebianImage if that is "".
//
// The same sources give the same names, modes and contents, so that what a daemon keeps of
// one build serves another.
func BuildContext(w io.Writer, dir, name string, program []byte, debian string) error {
	var files fs.FS = embedded
	if _, err := fs.Stat(embedded, path.Join(name, "Dockerfile")); err != nil && dir != "" {
		files = os.DirFS(dir)
	}
	c := contextWriter{tar: tar.NewWriter(w), made: map[string]bool{}}
	for _, part := range []struct {
		files  fs.FS
		folder string
	}{{embedded, harness}, {embedded, base}, {files, name}} {
		names, err := content(part.files, part.folder)
		if err != nil {
			return fmt.Errorf("environment %s: %w", name, err)
		}
		for _, file := range names {
			raw, err := fs.ReadFile(part.files, file)
			if err != nil {
				return fmt.Errorf("environment %s: %w", name, err)
			}
			if file == path.Join(base, "Dockerfile") && debian != "" {
				raw = bytes.Replace(raw, []byte("\nFROM "+DebianImage+"\n"), []byte("\nFROM "+debian+"\n"), 1)
			}
			c.file(file, raw, 0o644)
		}
	}
	c.file(path.Join(harness, supervisor), program, 0o755)
	return errors.Join(c.err, c.tar.Close())
}

// contextWriter writes files, each once, and before them their folders. It keeps the first
// error.
type contextWriter struct {
	tar  *tar.Writer
	made map[string]bool
	err  error
}

func (c *contextWriter) file(name string, content []byte, mode int64) {
	for i, r := range name {
		if r == '/' {
			c.entry(name[:i+1], nil, tar.TypeDir, 0o755)
		}
	}
	c.entry(name, content, tar.TypeReg, mode)
}

func (c *contextWriter) entry(name string, content []byte, kind byte, mode int64) {
	if c.made[name] || c.err != nil {
		return
	}
	c.made[name] = true
	c.err = c.tar.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(len(content))})
	if c.err == nil {
		_, c.err = c.tar.Write(content)
	}
}
