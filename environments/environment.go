package environments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Environment describes one folder. The JSON names are those of its
// environment.json.
type Environment struct {
	Name          string   `json:"-"`              // the folder's name
	Language      string   `json:"language"`       // what requests call it: "python"
	Aliases       []string `json:"aliases"`        // other names for the language
	DisplayName   string   `json:"display_name"`   // for people, and the kernelspec's
	Image         string   `json:"image"`          // repository in the file; with the tag after Load
	ImageOf       string   `json:"image_of"`       // the environment whose image this one has, instead of its own
	FileExtension string   `json:"file_extension"` // ".py"
	MediaTypes    []string `json:"media_types"`    // of a request body that is the code

	Kernel Kernel `json:"kernel"`
	// Entrypoint is the cell that runs a program of files in /mnt/data. {path} stands
	// for the path of its first file as a string literal in JSON's notation, {shell}
	// for the same as a word of a POSIX shell. "" if the language has no such thing.
	Entrypoint   string        `json:"entrypoint"`
	Dependencies *Dependencies `json:"dependencies"` // nil: requests cannot have any
	Needs        Needs         `json:"needs"`

	PackageLock string    `json:"packages"` // file name of the lock that Packages is read from
	Notes       []string  `json:"notes"`    // what a user should know, a sentence each
	Packages    []Package `json:"-"`        // what was asked for, not what that needs in turn
}

// Kernel says how a Jupyter kernel is treated.
type Kernel struct {
	Name string `json:"name"` // of the kernelspec in the image; "python3" is the harness's own
	// WarmUp is what waiting sandboxes have done before a run comes, the most wanted
	// first: of python3 modules that it imports, of others cells that it runs.
	WarmUp []string `json:"warm_up"`
	// Interrupts is false if a cell cannot be interrupted: one whose time is over
	// ends with its kernel.
	Interrupts bool `json:"interrupts"`
	// Finishes is true if a kernel that ends by itself does what a user can notice,
	// such as running exit handlers. Others are killed as soon as they have nothing to do.
	Finishes bool `json:"finishes"`
	// Env are variables that the kernel has beside those of its kernelspec.
	Env map[string]string `json:"env"`
}

// Dependencies says how the packages of a request get into an environment.
type Dependencies struct {
	Notation string `json:"notation"` // of a request's entries: see Notations
	// Prefix is what the names of Debian's packages for this language begin with, such as
	// "r-cran-". Entries may leave it out, and write the rest in any case, as CRAN does.
	Prefix string `json:"prefix"`
	// Installer is a program of Python in the image. It is run in a sandbox with a network to the
	// registry alone, and leaves below /mnt/data what belongs below /opt/dependencies.
	Installer string `json:"installer"`
	// Env are variables of a kernel that has dependencies.
	Env map[string]string `json:"env"`
}

// Notations of dependencies: of pip (PEP 508, names and versions alone), npm, and Debian.
var Notations = []string{"pip", "npm", "apt"}

// Needs are the least that runs in an environment must have. Zero is as the service has it.
type Needs struct {
	Memory   Bytes   `json:"memory"`
	DataSize Bytes   `json:"data_size"`
	TmpSize  Bytes   `json:"tmp_size"`
	Pids     int64   `json:"pids"`
	Timeout  Seconds `json:"timeout"` // if a request names none
}

// Bytes is a size, in JSON a string like "256 MiB".
type Bytes int64

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	n, err := units.RAMInBytes(text)
	*b = Bytes(n)
	return err
}

// Seconds is a time, in JSON a number of seconds.
type Seconds time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(raw []byte) error {
	var n float64
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	*s = Seconds(n * float64(time.Second))
	return nil
}

// parse reads and checks an environment.json.
func parse(files fs.FS, name string) (Environment, error) {
	var e Environment
	raw, err := fs.ReadFile(files, path.Join(name, "environment.json"))
	if err != nil {
		return e, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, fmt.Errorf("environment.json: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return e, errors.New("environment.json: more than one value")
	}
	e.Name = name
	if err := e.check(); err != nil {
		return e, fmt.Errorf("environment.json: %w", err)
	}
	return e, nil
}

// What names can be: they stand in URLs, labels, tags of images and flags.
var (
	nameForm       = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	languageForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+#._-]{0,31}$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+([._/-][a-z0-9]+)*$`)
	extensionForm  = regexp.MustCompile(`^\.[A-Za-z0-9]{1,15}$`)
	mediaTypeForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*$`)
	prefixForm     = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*)?$`)
	variableForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// check says what is wrong with the fields, by name.
func (e *Environment) check() error {
	var errs []error
	must := func(ok bool, field, text string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", field, text))
		}
	}
	form := func(form *regexp.Regexp, field, value string) {
		must(form.MatchString(value), field, fmt.Sprintf("%q is not of the form %s", value, form))
	}
	form(nameForm, "the folder's name", e.Name)
	form(languageForm, "language", e.Language)
	for _, alias := range e.Aliases {
		form(languageForm, "aliases", alias)
	}
	must(e.DisplayName != "", "display_name", "is missing")
	if e.ImageOf == "" {
		form(repositoryForm, "image", e.Image)
	} else {
		must(e.Image == "", "image", "is that of image_of")
	}
	form(extensionForm, "file_extension", e.FileExtension)
	for _, mediaType := range e.MediaTypes {
		form(mediaTypeForm, "media_types", mediaType)
	}
	form(languageForm, "kernel.name", e.Kernel.Name)
	variables := func(field string, env map[string]string) {
		for name := range env {
			form(variableForm, field, name)
		}
	}
	variables("kernel.env", e.Kernel.Env)
	must(e.Entrypoint == "" || strings.Contains(e.Entrypoint, "{path}") || strings.Contains(e.Entrypoint, "{shell}"),
		"entrypoint", "has neither {path} nor {shell}")
	if d := e.Dependencies; d != nil {
		must(slices.Contains(Notations, d.Notation), "dependencies.notation", fmt.Sprintf("%q is none of %s", d.Notation, strings.Join(Notations, ", ")))
		form(prefixForm, "dependencies.prefix", d.Prefix)
		must(d.Prefix == "" || d.Notation == "apt", "dependencies.prefix", "is for the notation apt alone")
		must(path.IsAbs(d.Installer), "dependencies.installer", "is not an absolute path")
		variables("dependencies.env", d.Env)
	}
	must(e.Needs.Memory >= 0 && e.Needs.DataSize >= 0 && e.Needs.TmpSize >= 0 && e.Needs.Pids >= 0 && e.Needs.Timeout >= 0, "needs", "cannot be negative")
	return errors.Join(errs...)
}
