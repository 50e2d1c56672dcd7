package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/docker/go-units"

	"notebox/agent"
	"notebox/terminal"
)

// maxFile bounds a file for the sandbox, in bytes: half of what /mnt/data holds.
const maxFile = 256 << 20

// OpenFile is a file of the host for /mnt/data, under its last name. Unlike those of
// agent.Folder it may be any that the person who names it may read.
func OpenFile(name string) (agent.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return agent.File{}, err
	}
	base := filepath.Base(name)
	switch {
	case !info.Mode().IsRegular():
		return agent.File{}, fmt.Errorf("%s is not a file", name)
	case info.Size() > maxFile:
		return agent.File{}, fmt.Errorf("%s has %s, and at most %s are taken", name, size(info.Size()), size(maxFile))
	case !utf8.ValidString(base) || strings.ContainsFunc(base, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
		return agent.File{}, errors.New("the name has a character in it that cannot be used in a sandbox")
	}
	return agent.File{Name: base, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(name) }}, nil
}

// size is a number of bytes for people.
func size(bytes int64) string {
	return units.CustomSize("%.4g %s", float64(bytes), 1000, []string{"bytes", "kB", "MB", "GB", "TB"})
}

// addFile takes one for the next question.
func (c *Console) addFile(name string) {
	if name == "" {
		c.complain("/file needs the path of a file")
		return
	}
	name = expanded(strings.Trim(name, `"'`))
	file, err := OpenFile(name)
	if err != nil {
		c.complain(err.Error())
		return
	}
	c.files = slices.DeleteFunc(c.files, func(f agent.File) bool { return f.Name == file.Name })
	c.files = append(c.files, file)
	c.write(fmt.Sprintf("%s+ /mnt/data/%s%s  %s%s, goes with your next question%s\n", terminal.Green, terminal.DefuseLine(file.Name), terminal.Plain, terminal.Dim, size(file.Size), terminal.Plain))
}

// expanded replaces ~/ by the home folder.
func expanded(name string) string {
	rest, ok := strings.CutPrefix(name, "~/")
	if !ok {
		return name
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return name
	}
	return filepath.Join(home, rest)
}

// Complete completes a line: commands, and after /file the names of files.
func Complete(line string) (all []string) {
	const file = "/file "
	typed, ok := strings.CutPrefix(line, file)
	if !ok {
		for _, c := range Commands {
			if line != "" && strings.HasPrefix(c, line) {
				all = append(all, c)
			}
		}
		return all
	}
	folder, begin := filepath.Split(typed)
	entries, err := os.ReadDir(expanded(filepath.Join(folder, ".") + "/"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || begin == "" && strings.HasPrefix(name, ".") || terminal.Defuse(name) != name {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		all = append(all, file+folder+name)
	}
	return all
}
