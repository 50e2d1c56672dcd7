package storage

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Object is what is known of one stored object.
type Object struct {
	// Key is its name in the store.
	Key string
	// Name is what people see, unescaped: a path such as "plots/a b.png". It comes from
	// hostile code. Put returns the one that it was given; Get reads it back from the
	// key, which of a path beyond about 900 bytes keeps the last part only.
	Name string
	// MediaType has no parameters: "text/csv".
	MediaType string
	// Bytes is the size of the content.
	Bytes int64
	// SHA256 is the hash of the content in hex digits, known to Put alone and empty from
	// Get: it is complete when the last byte is written, and by then a blob store takes
	// no metadata any more.
	SHA256 string
	// ModTime is when the object was written.
	ModTime time.Time
}

// inlineTypes are what a browser may show in place. All else is a download: HTML, SVG
// and XML can run scripts with the origin of this service, and so can a PDF in readers
// that browsers no longer control.
var inlineTypes = map[string]bool{
	"image/png":  true,
	"image/jpeg": true,
	"image/gif":  true,
	"image/webp": true,
}

// Inline reports whether a browser may show the object in place.
func (o Object) Inline() bool { return inlineTypes[o.MediaType] }

// Disposition is the object's Content-Disposition header by RFC 6266: the last part of
// its name in ASCII, and in UTF-8 by RFC 8187 where that differs. It is made of
// printable ASCII whatever the name.
func (o Object) Disposition() string {
	name := downloadName(o.Name)
	ascii := asciiName(name)
	var b strings.Builder
	if o.Inline() {
		b.WriteString("inline")
	} else {
		b.WriteString("attachment")
	}
	b.WriteString(`; filename="` + ascii + `"`)
	if ascii != name {
		b.WriteString("; filename*=UTF-8''" + extValue(name))
	}
	return b.String()
}

// maxDownloadNameBytes is the longest name that Linux file systems take.
const maxDownloadNameBytes = 255

// downloadName is the last part of a name as a file may be called on the disk of the
// person who downloads it. Characters that are not printed become "_": controls, and
// the marks that turn the direction of writing, with which "exe.gpj" reads "jpg.exe".
func downloadName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxDownloadNameBytes {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if strings.Trim(name, ". ") == "" {
		return "file"
	}
	return name
}

// asciiName is the form for clients that know filename alone. "%" goes too: some
// decode it there (RFC 6266, appendix D).
func asciiName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
}

// extValue writes s as the value-chars of RFC 8187.
func extValue(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isAlphanumeric(c) || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}
