package notebook

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxSVGHead is how far into an SVG its root element is looked for: before it
// stand a declaration, a DOCTYPE and perhaps a comment.
const maxSVGHead = 64 << 10

// svgRoot returns the root element of data, if that is svg.
func svgRoot(data []byte) (xml.StartElement, bool) {
	dec := xml.NewDecoder(bytes.NewReader(data[:min(len(data), maxSVGHead)]))
	dec.Strict = false
	// The bytes are UTF-8 already, whatever the declaration says.
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		tok, err := dec.RawToken()
		if err != nil {
			return xml.StartElement{}, false
		}
		if root, ok := tok.(xml.StartElement); ok {
			return root, root.Name.Local == "svg"
		}
	}
}

// svgDimensions returns width and height of the root element in CSS pixels or,
// if they are missing or relative, those of its viewBox; else 0.
func svgDimensions(data []byte) (width, height int) {
	root, _ := svgRoot(data)
	attrs := map[string]string{}
	for _, attr := range root.Attr {
		attrs[attr.Name.Local] = attr.Value
	}
	width, height = cssPixels(attrs["width"]), cssPixels(attrs["height"])
	if width > 0 && height > 0 {
		return width, height
	}
	box := strings.FieldsFunc(attrs["viewBox"], func(c rune) bool { return strings.ContainsRune(", \t\r\n", c) })
	if len(box) != 4 {
		return 0, 0
	}
	width, height = cssPixels(box[2]), cssPixels(box[3])
	if width == 0 || height == 0 {
		return 0, 0
	}
	return width, height
}

// cssPixels reads a CSS length (https://www.w3.org/TR/css-values-4/#absolute-lengths),
// 0 if it is none, is relative or is absurd.
func cssPixels(length string) int {
	length = strings.ToLower(strings.TrimSpace(length))
	scale := 1.0
	for unit, pixels := range map[string]float64{
		"px": 1, "pt": 96.0 / 72, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4,
	} {
		if number, ok := strings.CutSuffix(length, unit); ok {
			length, scale = number, pixels
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(length), 64)
	if err != nil || !(n > 0 && n*scale < math.MaxInt32) {
		return 0
	}
	return int(math.Round(n * scale))
}
