package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what a folder gives.
const (
	maxListed    = 500       // entries of one listing: more than a model reads with care
	maxRead      = 32 << 10  // bytes of one read: a prompt of ten thousand tokens
	maxHandFile  = 256 << 20 // bytes of one file for the sandbox
	maxHandTotal = 400 << 20 // bytes of all files handed over at once: /mnt/data holds 512 MiB
	maxHandFiles = 100       // files handed over at once
	maxLinks     = 20        // symbolic links that are followed on the way to one file
)

// Folder is one of the host that the file agent may read, and nothing beside it: no
// path leaves it, neither by ".." nor by a symbolic link (os.Root), and no name in it
// that begins with a dot can be reached, as that is where keys and histories are.
type Folder struct{ root *os.Root }

// OpenFolder opens a folder, to be closed.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// Close closes the folder; files that were handed over cannot be opened any more.
func (f *Folder) Close() error { return f.root.Close() }

// Errors that a model is told; none of them names a path of the host.
var (
	errDot     = errors.New("names that begin with a dot are not shown")
	errLeaves  = errors.New("it is not within the folder")
	errNoFile  = errors.New("there is no such file")
	errNotFile = errors.New("it is not a file")
	errLoops   = errors.New("it has too many symbolic links")
	errName    = errors.New("its name has a backslash or a control character in it")
)

// Entry is one of a listing.
type Entry struct {
	Name string // relative to the Folder, with a slash at the end for a folder
	Size int64
}

// List names what is in a folder within f; "" is f itself. more is how many were left
// out.
func (f *Folder) List(name string) (list []Entry, more int, err error) {
	name, err = f.resolve(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err := f.root.Stat(name); err != nil || !info.IsDir() {
		return nil, 0, errors.New("there is no such folder")
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, 0, errNoFile
	}
	defer dir.Close()
	all, err := dir.ReadDir(-1)
	if err != nil {
		return nil, 0, errors.New("the folder cannot be read")
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, d := range all {
		entry, ok := f.entry(path.Join(name, d.Name()))
		switch {
		case !ok:
		case len(list) == maxListed:
			more++
		default:
			list = append(list, entry)
		}
	}
	return list, more, nil
}

// entry leaves out what cannot be reached, and what is neither a file nor a folder.
func (f *Folder) entry(name string) (Entry, bool) {
	to, err := f.resolve(name)
	if err != nil {
		return Entry{}, false
	}
	info, err := f.root.Stat(to)
	switch {
	case err != nil:
		return Entry{}, false
	case info.IsDir():
		return Entry{Name: name + "/"}, true
	}
	return Entry{name, info.Size()}, info.Mode().IsRegular()
}

// Read returns a part of a file, and the size of the whole.
func (f *Folder) Read(name string, offset int64, most int) (part []byte, size int64, err error) {
	file, info, err := f.open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	if offset < 0 || offset > info.Size() {
		return nil, 0, fmt.Errorf("it has %d bytes", info.Size())
	}
	part, err = io.ReadAll(io.NewSectionReader(file, offset, int64(min(max(most, 0), maxRead))))
	if err != nil {
		return nil, 0, errors.New("it cannot be read")
	}
	return part, info.Size(), nil
}

// File makes one for the sandbox, under the same name. It is opened again each time
// that it is needed, by the same rules.
func (f *Folder) File(name string) (File, error) {
	if strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) || !utf8.ValidString(name) {
		return File{}, errName // the sandbox takes none
	}
	file, info, err := f.open(name)
	if err != nil {
		return File{}, err
	}
	file.Close()
	if info.Size() > maxHandFile {
		return File{}, fmt.Errorf("it has %d bytes, and one file may have %d", info.Size(), maxHandFile)
	}
	size := info.Size()
	return File{Name: path.Clean(name), Size: size, Open: func() (io.ReadCloser, error) {
		file, _, err := f.open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &sized{io.LimitReader(file, size), file}, nil
	}}, nil
}

// sized reads no more of a file than it had when its size was told.
type sized struct {
	io.Reader
	io.Closer
}

func (f *Folder) open(name string) (*os.File, fs.FileInfo, error) {
	to, err := f.resolve(name)
	if err != nil {
		return nil, nil, err
	}
	// Not before it is known to be a regular file: opening a pipe would wait for a writer.
	if info, err := f.root.Stat(to); err != nil {
		return nil, nil, errNoFile
	} else if !info.Mode().IsRegular() {
		return nil, nil, errNotFile
	}
	file, err := f.root.OpenFile(to, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, errNoFile
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, nil, errNotFile
	}
	return file, info, nil
}

// resolve follows the symbolic links of a name, so that a dotfile is not reached by one
// either. That nothing leaves the folder, os.Root sees to when it is opened.
func (f *Folder) resolve(name string) (string, error) {
	if strings.ContainsRune(name, 0) || strings.HasPrefix(name, "/") {
		return "", errLeaves
	}
	rest, at := strings.Split(path.Clean("./"+name), "/"), "."
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			if at == "." {
				return "", errLeaves
			}
			at = path.Dir(at)
			continue
		case strings.HasPrefix(part, "."):
			return "", errDot
		}
		next := path.Join(at, part)
		info, err := f.root.Lstat(next)
		if err != nil {
			return "", errNoFile
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := f.root.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", errLoops
		}
		if path.IsAbs(target) {
			return "", errLeaves
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
