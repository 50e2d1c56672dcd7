package dependencies

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of an archive beside its bytes.
const (
	maxArchiveEntries = 200_000 // a large set of npm's has 50,000 files
	maxNameBytes      = 1024    // of a path; the file system takes 255 of each part
	maxPartBytes      = 255
	maxDepth          = 64
	maxNameSum        = 16 << 20 // bytes of all names: they are kept in memory; npm's set has 5 MB
	// entryBytes is what an entry counts for beside its contents, so that an empty file is
	// not free.
	entryBytes = 512
	// whiteout begins the names by which an image takes away what is below it.
	whiteout = ".wh."
	// maxArchiveExtra is what an archive has beside contents: a kilobyte for each
	// entry, and a name that is long another.
	maxArchiveExtra = 3 << 10
)

// errTooLarge is an archive of more than it may have.
var errTooLarge = errors.New("the packages are larger than a layer may be")

// archive is what rewrite has seen.
type archive struct {
	in    *tar.Reader
	out   *tar.Writer
	most  int64 // bytes
	bytes int64 // of contents, and entryBytes for each entry
	count int
	names int             // bytes of them
	kinds map[string]byte // of what is written, by name: its typeflag
}

// rewrite reads a hostile archive of what belongs below a folder, and writes it anew: clean
// relative names, folders before what is in them, each name once; regular files, folders
// and symbolic links that stay inside; no owners, times, attributes, devices, hard links
// or rights but to execute. It returns the bytes of contents, with entryBytes for each entry.
func rewrite(out io.Writer, in io.Reader, most int64) (int64, error) {
	a := &archive{in: tar.NewReader(in), out: tar.NewWriter(out), most: most, kinds: map[string]byte{".": tar.TypeDir}}
	for {
		h, err := a.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read the archive: %w", err)
		}
		if err := a.entry(h); err != nil {
			return 0, err
		}
	}
	// What follows the end is nothing to us, and the sandbox waits for it to be read.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return 0, fmt.Errorf("read the archive: %w", err)
	}
	return a.bytes, a.out.Close()
}

func (a *archive) entry(h *tar.Header) error {
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	if name == "." && h.Typeflag == tar.TypeDir {
		return nil
	}
	if a.kinds[name] == tar.TypeDir && h.Typeflag == tar.TypeDir {
		return nil
	}
	if _, twice := a.kinds[name]; twice {
		return fmt.Errorf("the archive has %q twice", name)
	}
	if err := a.parents(name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return a.write(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, name)
	case tar.TypeSymlink:
		if err := checkLink(name, h.Linkname); err != nil {
			return err
		}
		return a.write(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: h.Linkname, Mode: 0o777}, name)
	case tar.TypeReg:
		return a.file(name, h)
	}
	return fmt.Errorf("the archive has %q, which is neither a file nor a folder nor a link", name)
}

func (a *archive) file(name string, h *tar.Header) error {
	if h.Size < 0 || h.Size > a.most-a.bytes {
		return errTooLarge
	}
	a.bytes += h.Size
	mode := int64(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	if err := a.write(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: h.Size, Mode: mode}, name); err != nil {
		return err
	}
	if n, err := io.Copy(a.out, a.in); err != nil || n != h.Size {
		return fmt.Errorf("read %q of the archive: %d of %d bytes: %w", name, n, h.Size, err)
	}
	return nil
}

func (a *archive) write(h *tar.Header, name string) error {
	a.count++
	a.names += len(name) + len(h.Linkname)
	a.bytes += entryBytes
	if a.count > maxArchiveEntries || a.names > maxNameSum || a.bytes > a.most {
		return errTooLarge
	}
	a.kinds[name] = h.Typeflag
	h.ModTime = time.Unix(0, 0)
	return a.out.WriteHeader(h)
}

// parents writes the folders above a name that are not there yet: who unpacks would make
// them with whatever rights.
func (a *archive) parents(name string) error {
	parent := path.Dir(name)
	kind, known := a.kinds[parent]
	switch {
	case kind == tar.TypeDir:
		return nil
	case known:
		return fmt.Errorf("the archive has %q below what is no folder", name)
	}
	if err := a.parents(parent); err != nil {
		return err
	}
	return a.write(&tar.Header{Typeflag: tar.TypeDir, Name: parent + "/", Mode: 0o755}, parent)
}

// cleanName is the one form of a name that stays where it belongs.
func cleanName(given string) (string, error) {
	name := path.Clean(strings.TrimSuffix(given, "/"))
	if given == "" || !plainPath(given) || !fs.ValidPath(name) {
		return "", fmt.Errorf("the archive has a name that is not taken: %q", given)
	}
	return name, nil
}

func plainPath(p string) bool {
	if len(p) > maxNameBytes || !utf8.ValidString(p) || strings.Count(p, "/") >= maxDepth || strings.ContainsFunc(p, unicode.IsControl) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > maxPartBytes || strings.HasPrefix(part, whiteout) {
			return false
		}
	}
	return true
}

// checkLink takes links to what is inside: up some folders, which are none of them links
// themselves, and then down. So no chain of links leads out either.
func checkLink(name, target string) error {
	bad := fmt.Errorf("the archive has a link that is not taken: %q to %q", name, target)
	if target == "" || path.IsAbs(target) || !plainPath(target) {
		return bad
	}
	down := false
	for part := range strings.SplitSeq(strings.TrimSuffix(target, "/"), "/") {
		switch {
		case part == "..":
			if down {
				return bad
			}
		case part != ".":
			down = true
		}
	}
	if !fs.ValidPath(path.Join(path.Dir(name), target)) {
		return bad
	}
	return nil
}
