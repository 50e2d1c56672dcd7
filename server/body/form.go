package body

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
)

// FormType is a form with files (RFC 7578).
const FormType = "multipart/form-data"

// Form is a multipart body that is being read (RFC 7578).
type Form struct {
	Of     *Reader
	Work   *intake.Workspace
	Fields Fields           // of the text parts, in the order in which errors in them are told
	Inputs *executor.Inputs // takes the file parts
	texts  map[string]*intake.Spool
	left   int64 // bytes that the text parts may still have together
}

// Read reads a form and sets its fields.
func (f *Form) Read(r *http.Request, boundary string) error {
	f.texts, f.left = map[string]*intake.Spool{}, f.Of.MaxBody
	if r.ContentLength < 0 || r.ContentLength >= intake.SpoolMemory { // a part's header alone may have megabytes
		if err := f.Work.Take(); err != nil {
			return err
		}
	}
	if err := f.Of.Parts(r, boundary, f.take); err != nil {
		return err
	}
	return f.decode(r)
}

// Parts calls take for each part of a form, which is to read it to its end. The form
// has to be whole, and one part at least.
func (b *Reader) Parts(r *http.Request, boundary string, take func(*multipart.Part) error) error {
	if boundary == "" {
		return problem.Malformed("", "Content-Type: the boundary is missing")
	}
	if r.ContentLength > b.MaxUpload {
		return problem.TooLarge("", "the body is larger than %d bytes", b.MaxUpload)
	}
	body := http.MaxBytesReader(nil, r.Body, b.MaxUpload)
	// multipart takes some early ends for the end of the form. Here the body's end
	// is an error, so that io.EOF means the closing boundary, which may lack its
	// line break.
	head := &headRoom{r: io.MultiReader(body, strings.NewReader("\r\n"), cutOff{})}
	parts := multipart.NewReader(head, boundary)
	empty := true
	for {
		head.left = maxPartHead
		part, err := parts.NextRawPart()
		head.left = math.MaxInt64
		if head.over {
			return problem.Malformed("", "a part's header, or what stands between parts, is longer than %d bytes", maxPartHead)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return Problem(err, NotAForm)
		}
		empty = false
		if err := take(part); err != nil {
			return Problem(err, NotAForm)
		}
	}
	// What follows the last part is nothing to us, but net/http notices a client
	// that leaves only after the body's end.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return Problem(err, NotAForm)
	}
	if empty {
		return problem.Malformed("", "the form is empty")
	}
	return nil
}

// maxPartHead bounds the header of a form's part, bytes. It is far above a long name with its
// folders, every byte of it escaped. Package multipart's own bound is 10 MiB, which take
// twenty times that in memory when they are parameters.
const maxPartHead = 64 << 10

// headRoom ends a body whose part's header is too long.
type headRoom struct {
	r    io.Reader
	left int64
	over bool
}

func (h *headRoom) Read(p []byte) (int, error) {
	if h.left <= 0 {
		h.over = true
		return 0, errPartHead
	}
	n, err := h.r.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

var errPartHead = errors.New("a part's header is too long")

// NotAForm is the answer to a body that cannot be read as a form.
const NotAForm = "the body is not well-formed multipart/form-data"

// cutOff is the end of a body that should have ended before.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// PartName is what a part is called, and its file name, with its folders, where it has
// one.
func PartName(part *multipart.Part) (name, filename string, isFile bool, err error) {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	name, named := params["name"]
	if err != nil || !named {
		return "", "", false, problem.Malformed("", "a part has no name in its Content-Disposition")
	}
	if enc := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); !slices.Contains([]string{"", "binary", "8bit", "7bit"}, enc) {
		return "", "", false, problem.Malformed(problem.Printable(problem.Cut(name)), "its Content-Transfer-Encoding is not supported")
	}
	filename, isFile = params["filename"] // Part.FileName would strip the folders
	return name, filename, isFile, nil
}

// take reads one part to its end.
func (f *Form) take(part *multipart.Part) error {
	name, filename, isFile, err := PartName(part)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Name == name }) {
		return problem.Malformed(problem.Printable(problem.Cut(name)), "there is no such field")
	}
	if name == "files" && isFile {
		return f.takeFile(part, filename)
	}
	return f.takeText(part, name)
}

func (f *Form) takeFile(part *multipart.Part, filename string) error {
	in, p := f.Inputs.Add(fmt.Sprintf("files[%d]", len(f.Inputs.List)), filename)
	if p != nil {
		return p
	}
	var err error
	in.Path, in.Size, err = f.Work.Save(part)
	return err
}

func (f *Form) takeText(part *multipart.Part, name string) error {
	if f.texts[name] != nil {
		return problem.Malformed(name, "is there more than once")
	}
	limited := &io.LimitedReader{R: part, N: f.left + 1}
	text, err := f.Work.Spool(limited)
	if err != nil {
		return err
	}
	if f.left = limited.N - 1; f.left < 0 {
		return problem.TooLarge(name, "the text parts are larger than %d bytes", f.Of.MaxBody)
	}
	f.texts[name] = text
	return nil
}

// decode sets the fields of the texts.
func (f *Form) decode(r *http.Request) error {
	for _, field := range f.Fields {
		sp := f.texts[field.Name]
		if sp == nil {
			continue
		}
		err := f.Of.withText(r, f.Work, sp, func(raw []byte) error {
			if !utf8.Valid(raw) {
				return problem.Malformed(field.Name, "is not valid UTF-8")
			}
			return field.Set(raw)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
