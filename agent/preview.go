package agent

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is shown of a file: a table's head and some rows.
const (
	previewBytes = 4 << 10
	previewLines = 8
	previewLine  = 300 // bytes
)

// Preview is how a file begins: lines of text, or what kind of data it is.
func Preview(f File) string {
	r, err := f.Open()
	if err != nil {
		return "[It cannot be read.]"
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, previewBytes))
	if err != nil {
		return "[It cannot be read.]"
	}
	return preview(head, f.Size)
}

func preview(head []byte, size int64) string {
	if len(head) == 0 {
		return "[It is empty.]"
	}
	text := head
	if int64(len(head)) < size { // the last character may be cut
		for i := 0; i < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); i++ {
			text = text[:len(text)-1]
		}
	}
	if !utf8.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return fmt.Sprintf("[%s, beginning with the bytes % x]", http.DetectContentType(head), head[:min(len(head), 16)])
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	more := int64(len(text)) < size || len(lines) > previewLines
	lines = lines[:min(len(lines), previewLines)]
	for i, line := range lines {
		if line = strings.TrimRight(line, "\r"); len(line) > previewLine {
			line = strings.ToValidUTF8(line[:previewLine], "") + " …"
		}
		lines[i] = "    " + line
	}
	out := strings.Join(lines, "\n")
	if more {
		out += "\n    …"
	}
	return out
}
