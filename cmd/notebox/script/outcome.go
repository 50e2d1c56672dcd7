package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"

	"notebox/client"
)

// outcome prints what remains to be said of a run.
func (s *script) outcome(r *client.Result) {
	s.stdout.flush()
	s.stderr.flush()
	if *s.stdout.open && s.stdout.Terminal { // the shell's prompt begins a line
		s.stdout.print("\n")
	}
	if r.Status != "ok" && r.Status != "error" { // an error has its traceback
		s.say("%s. %s", strings.ReplaceAll(r.Status, "_", " "), r.Hint)
	}
	if r.Truncated {
		s.say("the output is cut: it was longer than the limit")
	}
	for _, skipped := range r.Skipped {
		s.say("%s: %s", skipped.Path, skipped.Reason)
	}
}

// places finds out whether what the program makes can be put where the caller wants it, before it
// runs.
func (s *script) places() error {
	for _, file := range []struct{ flag, name string }{{"--notebook", s.Notebook}, {"--html", s.HTML}} {
		folder := filepath.Dir(file.name)
		if info, err := os.Stat(folder); file.name != "" && (err != nil || !info.IsDir()) {
			return mistake("%s: there is no folder %s", file.flag, folder)
		}
	}
	if s.Out != "" {
		if err := os.MkdirAll(s.Out, 0o755); err != nil {
			return mistake("--out: %w", err)
		}
	}
	return nil
}

// save puts what the program made where the caller wants it, or names it.
func (s *script) save(ctx context.Context, notebox *client.Client, r *client.Result) error {
	var failed []error
	if s.Notebook != "" {
		if err := saveNotebook(ctx, notebox, r.Notebook.URL, s.Notebook); err != nil {
			failed = append(failed, fmt.Errorf("--notebook: %w", err))
		}
	}
	made := all(r)
	if s.Out == "" {
		if !s.JSON {
			s.name(made)
		}
		return errors.Join(failed...)
	}
	folder, err := os.OpenRoot(s.Out)
	if err != nil {
		return errors.Join(append(failed, fmt.Errorf("--out: %w", err))...)
	}
	defer folder.Close()
	for _, f := range made {
		if err := f.saveIn(ctx, notebox, folder); err != nil {
			failed = append(failed, fmt.Errorf("--out: %s: %w", f.name, err))
			continue
		}
		if !s.JSON {
			s.say("%s (%s)", filepath.Join(s.Out, filepath.FromSlash(f.name)), units.HumanSize(float64(f.bytes)))
		}
	}
	return errors.Join(failed...)
}

// stored is a file or an image that a run left.
type stored struct {
	name  string // relative
	bytes int64
	link  string
	lost  string // why it could not be stored
}

// all are the files of a run, and those of its images that are no file's copy by their name.
func all(r *client.Result) (made []stored) {
	named := map[string]bool{}
	for _, f := range r.Files {
		name := strings.TrimPrefix(f.Path, client.DataFolder+"/")
		named[name] = true
		made = append(made, stored{name, f.Bytes, f.URL, f.Error})
	}
	for _, i := range r.Images {
		if !named[i.Name] {
			made = append(made, stored{i.Name, i.Bytes, i.URL, i.Error})
		}
	}
	return made
}

// name says what there is, and how to get it.
func (s *script) name(made []stored) {
	var gone []string
	for _, f := range made {
		switch {
		case f.lost != "":
			s.say("%s: %s", f.name, f.lost)
		case s.Fleeting:
			gone = append(gone, f.name)
		default:
			s.say("%s (%s): %s", f.name, units.HumanSize(float64(f.bytes)), f.link)
		}
	}
	if len(gone) > 0 {
		s.say("not kept: %s; --out FOLDER keeps what the code makes", strings.Join(gone, ", "))
	}
}

// saveIn writes the file into a folder, and never outside.
func (f stored) saveIn(ctx context.Context, notebox *client.Client, folder *os.Root) error {
	if f.lost != "" {
		return errors.New(f.lost)
	}
	if parent := path.Dir(f.name); parent != "." {
		if err := folder.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	return save(ctx, notebox, f.link, func() (*os.File, error) {
		return folder.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	})
}

func saveNotebook(ctx context.Context, notebox *client.Client, link, name string) error {
	if link == "" {
		return errors.New("the service could not store it")
	}
	return save(ctx, notebox, link, func() (*os.File, error) { return os.Create(name) })
}

// save writes what a link leads to into a file that create makes.
func save(ctx context.Context, notebox *client.Client, link string, create func() (*os.File, error)) error {
	content, err := notebox.Open(ctx, link)
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := create()
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
