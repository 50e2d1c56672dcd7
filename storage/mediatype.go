package storage

import (
	"cmp"
	"net/http"
	"path"
	"strings"
)

// sniffBytes is what http.DetectContentType looks at.
const sniffBytes = 512

const unknownType = "application/octet-stream"

// NamedType tells the type of a file by its name alone; application/octet-stream where
// that says nothing. A browser must not be made to show one by it.
func NamedType(name string) string {
	return cmp.Or(typeOfName(name), unknownType)
}

// typeOfName is "" for a name that says nothing.
func typeOfName(name string) string {
	return typesByExtension[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]
}

// MediaType tells the type of a file, without parameters: by its name, else by its first
// bytes, of which 512 count. A type that a browser shows in place must be right by both: a
// page that is called plot.png is not shown as one.
func MediaType(name string, head []byte) string {
	sniffed, _, _ := strings.Cut(http.DetectContentType(head), ";")
	named := typeOfName(name)
	switch {
	case named == "":
		return sniffed
	case inlineTypes[named] && named != sniffed:
		if inlineTypes[sniffed] {
			return sniffed
		}
		return unknownType
	default:
		return named
	}
}

// typesByExtension is a table of our own, since Go's takes in what the machine has in
// /etc/mime.types, and a file's type would depend on where it was stored. The names are
// IANA's if it has one.
var typesByExtension = map[string]string{
	// text and data
	"csv":     "text/csv",
	"geojson": "application/geo+json",
	"ini":     "text/plain",
	"ipynb":   "application/x-ipynb+json",
	"json":    "application/json",
	"jsonl":   "application/x-ndjson",
	"log":     "text/plain",
	"md":      "text/markdown",
	"ndjson":  "application/x-ndjson",
	"rst":     "text/x-rst",
	"tex":     "text/x-tex",
	"toml":    "application/toml",
	"tsv":     "text/tab-separated-values",
	"txt":     "text/plain",
	"xml":     "application/xml",
	"yaml":    "application/yaml",
	"yml":     "application/yaml",

	// programs and pages
	"c":     "text/x-c",
	"cpp":   "text/x-c",
	"css":   "text/css",
	"h":     "text/x-c",
	"htm":   "text/html",
	"html":  "text/html",
	"js":    "text/javascript",
	"mjs":   "text/javascript",
	"py":    "text/x-python",
	"r":     "text/x-r",
	"sh":    "application/x-sh",
	"sql":   "application/sql",
	"wasm":  "application/wasm",
	"xhtml": "application/xhtml+xml",

	// images
	"avif": "image/avif",
	"bmp":  "image/bmp",
	"gif":  "image/gif",
	"ico":  "image/vnd.microsoft.icon",
	"jpeg": "image/jpeg",
	"jpg":  "image/jpeg",
	"png":  "image/png",
	"svg":  "image/svg+xml",
	"tif":  "image/tiff",
	"tiff": "image/tiff",
	"webp": "image/webp",

	// documents
	"doc":  "application/msword",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"epub": "application/epub+zip",
	"odp":  "application/vnd.oasis.opendocument.presentation",
	"ods":  "application/vnd.oasis.opendocument.spreadsheet",
	"odt":  "application/vnd.oasis.opendocument.text",
	"pdf":  "application/pdf",
	"ppt":  "application/vnd.ms-powerpoint",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"rtf":  "application/rtf",
	"xls":  "application/vnd.ms-excel",
	"xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",

	// arrays, tables, models
	"arrow":   "application/vnd.apache.arrow.file",
	"db":      "application/vnd.sqlite3",
	"feather": "application/vnd.apache.arrow.file",
	"h5":      "application/x-hdf5",
	"hdf5":    "application/x-hdf5",
	"joblib":  unknownType,
	"npy":     "application/x-npy",
	"npz":     "application/x-npz",
	"parquet": "application/vnd.apache.parquet",
	"pickle":  unknownType,
	"pkl":     unknownType,
	"sqlite":  "application/vnd.sqlite3",

	// archives
	"7z":  "application/x-7z-compressed",
	"bz2": "application/x-bzip2",
	"gz":  "application/gzip",
	"tar": "application/x-tar",
	"tgz": "application/gzip",
	"xz":  "application/x-xz",
	"zip": "application/zip",
	"zst": "application/zstd",

	// sound, film, fonts, shapes
	"flac": "audio/flac",
	"glb":  "model/gltf-binary",
	"mid":  "audio/midi",
	"mov":  "video/quicktime",
	"mp3":  "audio/mpeg",
	"mp4":  "video/mp4",
	"obj":  "model/obj",
	"ogg":  "audio/ogg",
	"otf":  "font/otf",
	"stl":  "model/stl",
	"ttf":  "font/ttf",
	"wav":  "audio/wav",
	"webm": "video/webm",
	"woff": "font/woff",
}
