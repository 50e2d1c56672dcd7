package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Asset is one file to serve.
type Asset struct {
	mediaType string
	policy    string
	packed    []byte        // compressed by gzip; nil: it is too small to be worth it
	plain     func() []byte // unpacked when first asked for: a few MB that few need
	tag       string        // of its content
}

// filePolicy is for files that are no pages, where a browser shows one by itself.
const filePolicy = "default-src 'none'; frame-ancestors 'none'"

// Page returns a page in HTML with its Content-Security-Policy.
func Page(policy string, content []byte) *Asset {
	return newAsset("text/html; charset=utf-8", policy, content)
}

func newAsset(mediaType, policy string, content []byte) *Asset {
	sum := sha256.Sum256(content)
	return &Asset{mediaType: mediaType, policy: policy, tag: hex.EncodeToString(sum[:16]), plain: func() []byte { return content }}
}

// mediaTypes are those of the files that Load reads, and there are no others.
var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

// Load reads all files below the root of a file system, which are none of them pages. The
// assets are known by the last part of their name, without .gz.
func Load(from fs.FS) (map[string]*Asset, error) {
	out := map[string]*Asset{}
	err := fs.WalkDir(from, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, file)
		if err != nil {
			return err
		}
		name, packed := strings.CutSuffix(path.Base(file), ".gz")
		mediaType := mediaTypes[path.Ext(name)]
		if mediaType == "" {
			return fmt.Errorf("%s: no known type", file)
		}
		a := newAsset(mediaType, filePolicy, content)
		if packed {
			a.packed = content
			a.plain = sync.OnceValue(func() []byte { return unpack(content) })
		}
		out[name] = a
		return nil
	})
	return out, err
}

// Plain is the content, unpacked.
func (a *Asset) Plain() []byte { return a.plain() }

// Packed is the content compressed by gzip; nil where it is not.
func (a *Asset) Packed() []byte { return a.packed }

// unpack returns what is compressed in content, which is embedded: a test holds that all
// of it can be unpacked.
func unpack(content []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		panic(fmt.Errorf("asset: an embedded file is broken: %w", err))
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		panic(fmt.Errorf("asset: an embedded file is broken: %w", err))
	}
	return plain
}

// AcceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3): what is named counts
// before "*", and a weight of 0 is a refusal.
func AcceptsGzip(headers []string) bool {
	named, any := -1.0, -1.0
	for _, coding := range strings.Split(strings.Join(headers, ","), ",") {
		name, weight, weighted := strings.Cut(coding, ";")
		q := 1.0
		if weighted {
			_, value, _ := strings.Cut(weight, "=")
			q, _ = strconv.ParseFloat(strings.TrimSpace(value), 64) // what is none is 0
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip":
			named = max(named, q)
		case "*":
			any = max(any, q)
		}
	}
	return named > 0 || named < 0 && any > 0
}

// Serve answers a request with the asset, and false if there is none.
func (a *Asset) Serve(w http.ResponseWriter, r *http.Request) bool {
	if a == nil {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("Content-Security-Policy", a.policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin") // who opened it has no hold on it
	h.Set("Cache-Control", "no-cache")                 // kept, and asked for again by its ETag: it changes with the program
	content, tag := a.plain, a.tag
	if a.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if AcceptsGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			content, tag = func() []byte { return a.packed }, a.tag+"-gzip"
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content()))
	return true
}
