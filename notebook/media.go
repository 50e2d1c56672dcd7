package notebook

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxAddress bounds an address in a text, in bytes: browsers take about as much.
const maxAddress = 2_000

// embedded adds to a bundle the sound or film that its HTML carries as data, as that of
// IPython's Audio and Video and of matplotlib's animations does: so it is a file with a name.
func (r *reading) embedded(cell int, bundle map[string]Datum) {
	source := bundle["text/html"].Text
	if source == nil || !strings.Contains(*source, "<audio") && !strings.Contains(*source, "<video") {
		return
	}
	tokens := html.NewTokenizer(strings.NewReader(*source))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		_, uri := tagAndSource(tokens)
		head, data, _ := strings.Cut(uri, ",")
		mediaType, isData := strings.CutPrefix(head, "data:")
		mediaType, isBase64 := strings.CutSuffix(mediaType, ";base64")
		mediaType, ok := parseMediaType(mediaType)
		if !isData || !isBase64 || !ok || !strings.HasPrefix(mediaType, "audio/") && !strings.HasPrefix(mediaType, "video/") {
			continue
		}
		if _, there := bundle[mediaType]; there {
			continue
		}
		if len(bundle) >= maxMediaTypes {
			return
		}
		kind, _ := kindOf(mediaType)
		if datum, ok := r.base64Datum(cell, mediaType, kind, data); ok {
			bundle[mediaType] = datum
		}
	}
}

// tagAndSource returns the name of the tag that tokens are at, and its src, "" if it has none.
func tagAndSource(tokens *html.Tokenizer) (name atom.Atom, source string) {
	raw, more := tokens.TagName()
	name = atom.Lookup(raw)
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		if source == "" && string(key) == "src" {
			source = strings.TrimSpace(string(value))
		}
	}
	return name, source
}

// mediaWords say what is at an address, "" for what is data, which has a line of its own.
// A source belongs to the element within.
func mediaWords(name, within atom.Atom, source string) string {
	if source == "" || strings.HasPrefix(source, "data:") {
		return ""
	}
	if name == atom.Source {
		name = within
	}
	switch name {
	case atom.Audio, atom.Video:
		return fmt.Sprintf("[%s: %s]\n", name, head(source, maxAddress))
	case atom.Iframe:
		return fmt.Sprintf("[page: %s]\n", head(source, maxAddress))
	}
	return ""
}
