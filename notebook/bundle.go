package notebook

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// bundle reads a MIME bundle: an object of representations by media type.
func (r *reading) bundle(cell int, raw jsontext.Value) map[string]Datum {
	var order []string
	given := map[string]jsontext.Value{}
	err := members(raw, lenient, func(key string, value jsontext.Value) error {
		mediaType, ok := parseMediaType(key)
		if !ok {
			r.drop(cell, "", "the output has data under %q, which is no media type", clip(key))
			return nil
		}
		if given[mediaType] != nil {
			r.drop(cell, mediaType, "the media type is given twice")
			return nil
		}
		if len(order) == maxMediaTypes {
			r.cut(cell, mediaType, "the output has more than %d media types", maxMediaTypes)
			return errStop
		}
		order, given[mediaType] = append(order, mediaType), value
		return nil
	})
	if err != nil {
		r.drop(cell, "", "the data of the output %v", err)
	}
	bundle := map[string]Datum{}
	read := func(mediaType string) (ok bool) {
		if given[mediaType] == nil {
			return false
		}
		datum, ok := r.datum(cell, mediaType, given[mediaType])
		if ok {
			bundle[mediaType] = datum
		}
		return ok
	}
	photographed := false
	for _, mediaType := range order {
		switch {
		case !slices.Contains(photographs, mediaType):
			read(mediaType)
		case !photographed: // else it is another format of what is there
			photographed = true
			_ = slices.ContainsFunc(photographs, read) // up to the first that can be read
		}
	}
	r.embedded(cell, bundle)
	return bundle
}

// photographs are the types of which a bundle has one picture in several formats, as
// Pillow sends each image as PNG and as JPEG. The first of them is read.
var photographs = []string{"image/png", "image/webp", "image/jpeg"}

// mediaTypePattern is RFC 6838's restricted-name, twice; parameters are cut off.
var mediaTypePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$`)

func parseMediaType(key string) (string, bool) {
	if len(key) > 512 {
		return "", false
	}
	base, _, _ := strings.Cut(key, ";")
	mediaType := strings.ToLower(strings.TrimSpace(base))
	return mediaType, mediaTypePattern.MatchString(mediaType)
}

// datum reads one representation.
func (r *reading) datum(cell int, mediaType string, raw jsontext.Value) (Datum, bool) {
	if isJSON(mediaType) {
		return r.jsonDatum(cell, mediaType, raw)
	}
	text, ok := multiline(raw)
	if !ok {
		r.drop(cell, mediaType, "the value is no string and no list of strings")
		return Datum{}, false
	}
	kind, binary := kindOf(mediaType)
	switch {
	case mediaType == svgType:
		return r.blobDatum(cell, mediaType, kind, []byte(text))
	case binary:
		return r.base64Datum(cell, mediaType, kind, text)
	case mediaType == "text/plain":
		text = r.clamp(cell, mediaType, "the text", Plain(text), r.limits.MaxTextBytes)
	case int64(len(text)) > r.limits.MaxTextBytes: // half an HTML page is none
		r.cut(cell, mediaType, "the text has %d bytes, the limit is %d", len(text), r.limits.MaxTextBytes)
		return Datum{}, false
	}
	return Datum{Text: &text}, true
}

// isJSON reports whether values of mediaType are JSON and not strings, as
// nbformat's schema has it.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

func (r *reading) jsonDatum(cell int, mediaType string, raw jsontext.Value) (Datum, bool) {
	if int64(len(raw)) > r.limits.MaxTextBytes {
		r.cut(cell, mediaType, "the JSON has %d bytes, the limit is %d", len(raw), r.limits.MaxTextBytes)
		return Datum{}, false
	}
	if Depth(raw) > MaxDepth {
		r.cut(cell, mediaType, "the JSON nests deeper than %d levels", MaxDepth)
		return Datum{}, false
	}
	// A name twice would be an error wherever this is encoded again.
	clean, err := jsontext.AppendFormat(nil, []byte(raw), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		r.drop(cell, mediaType, "the JSON has a name twice in one object")
		return Datum{}, false
	}
	return Datum{JSON: clean}, true
}

func (r *reading) base64Datum(cell int, mediaType string, kind blobKind, text string) (Datum, bool) {
	if int64(base64.StdEncoding.DecodedLen(len(text))) > r.limits.MaxBlobBytes+r.limits.MaxBlobBytes/32 {
		r.cut(cell, mediaType, "the data is larger than the limit of %d bytes", r.limits.MaxBlobBytes)
		return Datum{}, false
	}
	// StdEncoding passes over the newlines that older libraries put in.
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		r.drop(cell, mediaType, "the data is not base64")
		return Datum{}, false
	}
	return r.blobDatum(cell, mediaType, kind, data)
}
