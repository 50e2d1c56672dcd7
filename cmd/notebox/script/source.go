package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"notebox/client"
)

const (
	// maxSource bounds a program or a notebook, in bytes: a service takes 25 MiB by default.
	maxSource = 64 << 20
	// maxFiles bounds what folders of --file may have: a service takes 1,000.
	maxFiles = 1000
)

// notebookExtension is that of a notebook (nbformat).
const notebookExtension = ".ipynb"

// source fills in what is to be run.
func source(run *client.Run, o Options) error {
	switch {
	case o.Code != nil:
		run.Code = *o.Code
	case o.Path == "-":
		raw, err := readAll(o.Stdin)
		if err != nil {
			return mistake("standard input: %w", err)
		}
		return text(run, raw)
	default:
		raw, err := readFile(o.Path)
		if err != nil {
			return mistake("%w", err)
		}
		name := filepath.Base(o.Path)
		switch extension := strings.ToLower(filepath.Ext(name)); {
		case extension == notebookExtension:
			return notebook(run, raw)
		case extension == "" || o.Language != "" || o.Session != "":
			return text(run, raw)
		}
		run.Entrypoint = name
		// It may be among the others, too.
		run.Files = slices.DeleteFunc(run.Files, func(f client.File) bool { return f.Name == name })
		run.Files = append(run.Files, client.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(raw)), nil
		}})
	}
	return nil
}

// text is a program without a name, or a notebook.
func text(run *client.Run, raw []byte) error {
	if looksLikeNotebook(raw) {
		return notebook(run, raw)
	}
	run.Code = string(raw)
	if run.Language == "" && run.Session == "" {
		run.Language = interpreter(raw)
	}
	return nil
}

// notebook is an .ipynb, whose JSON the service reads.
func notebook(run *client.Run, raw []byte) error {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if !json.Valid(raw) {
		return mistake("the notebook is no JSON")
	}
	run.Notebook = raw
	return nil
}

// looksLikeNotebook reports whether a text without a name is an .ipynb.
func looksLikeNotebook(raw []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return false
	}
	var n struct {
		Format int             `json:"nbformat"`
		Cells  json.RawMessage `json:"cells"`
	}
	return json.Unmarshal(raw, &n) == nil && n.Format > 0 && n.Cells != nil
}

// interpreter is the language that a first line like "#!/usr/bin/env -S python3 -u" names, ""
// without one. The service knows node, deno, python3, sh and their like.
func interpreter(raw []byte) string {
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	rest, is := bytes.CutPrefix(line, []byte("#!"))
	if !is {
		return ""
	}
	words := strings.Fields(string(rest))
	for i, word := range words {
		switch name := path.Base(word); {
		case i == 0 && name == "env" || strings.HasPrefix(word, "-"):
		case name == "Rscript":
			return "r"
		default:
			return name
		}
	}
	return ""
}

// errLong is a program that no service takes.
var errLong = fmt.Errorf("it is larger than %d bytes", maxSource)

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := readAll(file)
	if errors.Is(err, errLong) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return raw, err
}

func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err == nil && len(raw) > maxSource {
		err = errLong
	}
	return raw, err
}

// Inputs are the files of --file, and all that is in the folders of it, by the names that they
// have below /mnt/data.
func Inputs(paths []string) (all []client.File, err error) {
	for _, given := range paths {
		found, err := input(given)
		if err != nil {
			return nil, mistake("--file: %w", err)
		}
		if all = append(all, found...); len(all) > maxFiles {
			return nil, mistake("--file: there are more than %d files", maxFiles)
		}
	}
	return all, nil
}

// input is a file, or what is in a folder, under the name that was given.
func input(given string) (all []client.File, err error) {
	named, err := filepath.Abs(given)
	if err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(named)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(name) // of what a link leads to
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		below, err := filepath.Rel(top, name)
		if err != nil || len(all) > maxFiles {
			return err
		}
		all = append(all, client.File{
			Name: path.Join(filepath.Base(named), filepath.ToSlash(below)),
			Open: func() (io.ReadCloser, error) { return os.Open(name) },
		})
		return nil
	})
	return all, err
}
