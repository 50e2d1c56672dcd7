package notebook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Text returns what a model should read of r: all outputs in order as plain
// text, each ended by exactly one newline.
//
//   - A stream is its text; an error its traceback with the final line
//     ("ValueError: x").
//   - A display or result is its text/plain, unless that is merely an
//     object's repr, such as <Figure size 640x480 with 1 Axes>, and a better one
//     is there: text/markdown, text/latex, the text of text/html, or
//     application/json.
//   - Sound, a film or a page at an address is a line "[audio: ADDRESS]".
//   - An image is a line "[image image_0.png: URL]", another blob
//     "[file output_0.pdf: URL]", after the text that came with it. link gives
//     the URL, "" (and the line none) if there is none; it may be nil.
func Text(r *Result, link func(*Blob) string) string {
	if link == nil {
		link = func(*Blob) string { return "" }
	}
	var text strings.Builder
	for _, out := range r.Outputs {
		for _, part := range parts(out, link) {
			if part != "" {
				text.WriteString(strings.TrimRight(part, "\n"))
				text.WriteByte('\n')
			}
		}
	}
	return text.String()
}

func parts(out Output, link func(*Blob) string) []string {
	switch out.Type {
	case TypeStream:
		return []string{out.Text}
	case TypeError:
		return []string{errorText(out)}
	default:
		return bundleParts(out.Data, link)
	}
}

// syntaxPlace is the place that IPython adds to the message of a SyntaxError, and not to
// its traceback.
var syntaxPlace = regexp.MustCompile(` \([^()\n]*, line \d+\)$`)

// errorText returns the traceback. IPython's ends with the name and the message. If another
// kernel's does not, they are added.
func errorText(out Output) string {
	final := strings.TrimSuffix(out.Name+": "+out.Message, ": ")
	if strings.Contains(out.Traceback, syntaxPlace.ReplaceAllString(final, "")) {
		return out.Traceback
	}
	return strings.TrimLeft(strings.TrimRight(out.Traceback, "\n")+"\n"+final, "\n")
}

func bundleParts(data map[string]Datum, link func(*Blob) string) []string {
	var blobs []string
	for _, mediaType := range slices.Sorted(maps.Keys(data)) {
		if blob := data[mediaType].Blob; blob != nil {
			blobs = append(blobs, blobLine(blob, link(blob)))
		}
	}
	plain := textOf(data, "text/plain")
	if plain != "" && !isRepr(plain) {
		return append([]string{plain}, blobs...)
	}
	if text := bestText(data); text != "" {
		return append([]string{text}, blobs...)
	}
	if len(blobs) > 0 {
		return blobs
	}
	if plain != "" {
		return []string{plain}
	}
	return []string{fmt.Sprintf("[output of type %s]", strings.Join(slices.Sorted(maps.Keys(data)), ", "))}
}

// bestText returns what stands for an object that text/plain only names.
func bestText(data map[string]Datum) string {
	for _, text := range []string{
		textOf(data, "text/markdown"),
		textOf(data, "text/latex"),
		Plain(htmlText(textOf(data, "text/html"))),
		Plain(string(data["application/json"].JSON)),
	} {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

func textOf(data map[string]Datum, mediaType string) string {
	if text := data[mediaType].Text; text != nil {
		return Plain(*text)
	}
	return ""
}

// isRepr reports whether text is the default repr of an object: <… at 0x7f…>.
func isRepr(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && !strings.Contains(text, "\n")
}

func blobLine(b *Blob, url string) string {
	kind := "file"
	if strings.HasPrefix(b.MediaType, "image/") {
		kind = "image"
	}
	if url == "" {
		return fmt.Sprintf("[%s %s]", kind, b.Name)
	}
	return fmt.Sprintf("[%s %s: %s]", kind, b.Name, url)
}
