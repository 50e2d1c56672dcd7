package notebook

import (
	"bytes"
	"crypto/sha256"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/webp"
)

const svgType = "image/svg+xml"

// blobKind is how blobs of a media type are named.
type blobKind struct {
	prefix string // "image" or "output"
	ext    string // ".png"
}

// extensions of the binary types that have a usual one; others are .bin. The
// system's own table (package mime) would differ from host to host.
var extensions = map[string]string{
	"application/gzip": ".gz",
	"application/pdf":  ".pdf",
	"application/zip":  ".zip",
	"audio/flac":       ".flac",
	"audio/mp4":        ".m4a",
	"audio/mpeg":       ".mp3",
	"audio/ogg":        ".ogg",
	"audio/wav":        ".wav",
	"audio/x-wav":      ".wav",
	"image/avif":       ".avif",
	"image/bmp":        ".bmp",
	"image/gif":        ".gif",
	"image/jpeg":       ".jpg",
	"image/png":        ".png",
	"image/tiff":       ".tif",
	"image/webp":       ".webp",
	svgType:            ".svg",
	"video/mp4":        ".mp4",
	"video/ogg":        ".ogv",
	"video/webm":       ".webm",
}

// kindOf reports whether values of mediaType are base64 in a notebook (or SVG),
// and how their blobs are named. An application type that is not known to be
// binary is text: so its bytes are kept, whatever they are.
func kindOf(mediaType string) (kind blobKind, binary bool) {
	class, _, _ := strings.Cut(mediaType, "/")
	ext, known := extensions[mediaType]
	if !known {
		ext = ".bin"
	}
	switch {
	case class == "image":
		return blobKind{"image", ext}, true
	case class == "audio", class == "video", class == "font", known, mediaType == "application/octet-stream":
		return blobKind{"output", ext}, true
	default:
		return blobKind{}, false
	}
}

// blobDatum checks data and names it.
func (r *reading) blobDatum(cell int, mediaType string, kind blobKind, data []byte) (Datum, bool) {
	if len(data) == 0 {
		r.drop(cell, mediaType, "the data is empty")
		return Datum{}, false
	}
	if int64(len(data)) > r.limits.MaxBlobBytes {
		r.cut(cell, mediaType, "the data has %d bytes, the limit is %d", len(data), r.limits.MaxBlobBytes)
		return Datum{}, false
	}
	if !hasMagic(mediaType, data) {
		r.drop(cell, mediaType, "the data is not of this type")
		return Datum{}, false
	}
	if r.blobs == r.limits.MaxBlobs {
		r.cut(cell, mediaType, "the run has more than %d images and binary outputs", r.limits.MaxBlobs)
		return Datum{}, false
	}
	r.blobs++
	width, height := dimensions(mediaType, data)
	return Datum{Blob: &Blob{
		Name:      r.name(content{mediaType, sha256.Sum256(data)}, kind),
		MediaType: mediaType,
		Bytes:     data,
		Width:     width,
		Height:    height,
	}}, true
}

// hasMagic reports whether data begins as its type does; true for types whose
// beginning is not known here.
func hasMagic(mediaType string, data []byte) bool {
	begins := func(magic string) bool { return bytes.HasPrefix(data, []byte(magic)) }
	switch mediaType {
	case "image/png":
		return begins("\x89PNG\r\n\x1a\n")
	case "image/jpeg":
		return begins("\xff\xd8\xff")
	case "image/gif":
		return begins("GIF87a") || begins("GIF89a")
	case "image/webp":
		return begins("RIFF") && len(data) >= 12 && string(data[8:12]) == "WEBP"
	case "application/pdf":
		return begins("%PDF-")
	case svgType:
		_, ok := svgRoot(data)
		return ok
	default:
		return true
	}
}

// dimensions returns an image's size in pixels, 0 if it is not told. It reads
// headers and never decodes pixels.
func dimensions(mediaType string, data []byte) (width, height int) {
	var decode func(io.Reader) (image.Config, error)
	switch mediaType {
	case "image/png":
		decode = png.DecodeConfig
	case "image/jpeg":
		decode = jpeg.DecodeConfig
	case "image/gif":
		decode = gif.DecodeConfig
	case "image/webp":
		decode = webp.DecodeConfig
	case svgType:
		return svgDimensions(data)
	default:
		return 0, 0
	}
	config, err := decode(bytes.NewReader(data))
	if err != nil {
		return 0, 0
	}
	return config.Width, config.Height
}
