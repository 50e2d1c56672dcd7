package executor

import (
	"bytes"
	"io"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"notebox/executor/fetch"
	"notebox/executor/problem"
	"notebox/runner"
)

// Bounds on the files of one request.
const (
	MaxInputs        = 1000 // a folder of images; more is an archive's work
	maxNameBytes     = 1024 // leaves room below the 4,096 of PATH_MAX
	maxNameComponent = 255  // NAME_MAX of every Linux file system
	maxNameDepth     = 64   // folders within folders

	// MaxHeld is what the files of one request may take of memory together while it waits and
	// runs, in bytes; the others are in its workspace. A program takes as much.
	MaxHeld = 1 << 20
)

// Input is one file for /mnt/data. Where it is from is one of url, id, path and data.
type Input struct {
	Field string // what the caller calls it: "files[2]"
	Name  string // clean, relative to /mnt/data
	URL   string
	ID    string // of a kept input
	Path  string // a file of the request's workspace
	Data  []byte
	Size  int64

	Title  string                        // what the server that it was fetched from calls it; hostile, may be empty
	Stored func() (io.ReadCloser, error) // opens a kept input, once it was found
}

// Open returns the content. It must be closed.
func (in *Input) Open() (io.ReadCloser, error) {
	switch {
	case in.Stored != nil:
		return in.Stored()
	case in.Path != "":
		return os.Open(in.Path)
	}
	return io.NopCloser(bytes.NewReader(in.Data)), nil
}

// Inputs are the files of one request, checked against each other as they come.
type Inputs struct {
	List    []*Input
	Held    int64 // bytes of their data
	files   map[string]bool
	folders map[string]bool
}

// Add checks a name and takes it. The field is the file's, "files[2]".
func (all *Inputs) Add(field, name string) (*Input, *problem.Error) {
	if len(all.List) == MaxInputs {
		return nil, problem.Unfit("files", "there are more than %d", MaxInputs)
	}
	if name == "" {
		return nil, problem.Malformed(field+".name", "is missing or empty")
	}
	clean, why := CleanName(name)
	if why != "" {
		return nil, problem.Malformed(field+".name", "%s", why)
	}
	if all.files[clean] {
		return nil, problem.Malformed(field+".name", "another file has the same name")
	}
	if all.folders[clean] {
		return nil, problem.Malformed(field+".name", "another file has this name as its folder")
	}
	for dir := path.Dir(clean); dir != "."; dir = path.Dir(dir) {
		if all.files[dir] {
			return nil, problem.Malformed(field+".name", "its folder is the name of another file")
		}
	}
	if all.files == nil {
		all.files, all.folders = map[string]bool{}, map[string]bool{}
	}
	all.files[clean] = true
	for dir := path.Dir(clean); dir != "."; dir = path.Dir(dir) {
		all.folders[dir] = true
	}
	in := &Input{Field: field, Name: clean}
	all.List = append(all.List, in)
	return in, nil
}

// Size is that of all together, in bytes.
func (all *Inputs) Size() int64 {
	var sum int64
	for _, in := range all.List {
		sum += in.Size
	}
	return sum
}

// Check refuses what need not be tried: more than a /mnt/data of room bytes holds, and what
// is no URL.
func (all *Inputs) Check(room int64) error {
	if all.Size() > room {
		return problem.TooLarge("files", "together they are larger than /mnt/data, which holds %d bytes", room)
	}
	for _, in := range all.List {
		if in.URL == "" {
			continue
		}
		if _, err := fetch.Parse(in.URL); err != nil {
			return problem.Unfit(in.Field+".url", "%s", err)
		}
	}
	return nil
}

// Spec is what a runner takes of them.
func (all *Inputs) Spec() []runner.Input {
	var out []runner.Input
	for _, in := range all.List {
		out = append(out, runner.Input{Path: in.Name, Size: in.Size, Open: in.Open})
	}
	return out
}

// CleanName returns the name relative to /mnt/data, or says why it is refused.
// A name is taken as it is or not at all, so that the code finds the file under
// the name that its author wrote; only the prefix /mnt/data/, which models like
// to write, is taken off. A backslash is refused: on Linux it is a part of a
// name, and whoever sends one means a folder.
func CleanName(name string) (clean, why string) {
	name = strings.TrimPrefix(name, runner.DataFolder+"/")
	switch {
	case name == "":
		return "", "is empty"
	case len(name) > maxNameBytes:
		return "", "is too long"
	case !utf8.ValidString(name):
		return "", "is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", "has a control character in it"
	case strings.HasPrefix(name, "/"):
		return "", "is not within " + runner.DataFolder + "/"
	case strings.Contains(name, `\`):
		return "", `has a backslash in it; folders are separated by "/"`
	}
	components := strings.Split(name, "/")
	if len(components) > maxNameDepth {
		return "", "has too many folders"
	}
	for _, c := range components {
		switch {
		case c == "..":
			return "", "leaves " + runner.DataFolder + "/"
		case c == "." || c == "":
			return "", `has an empty component or "." in it`
		case len(c) > maxNameComponent:
			return "", "has a component of more than 255 bytes"
		}
	}
	return name, ""
}
