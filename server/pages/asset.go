package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
)

// asset is one file to serve.
type asset struct {
	mediaType string
	policy    string
	packed    []byte        // compressed by gzip; nil: it is too small to be worth it
	plain     func() []byte // unpacked when first asked for: a few MB that few need
	tag       string        // of its content
}

// assetPolicy is for files that are no pages, where a browser shows one by itself.
const assetPolicy = "default-src 'none'; frame-ancestors 'none'"

func newAsset(mediaType, policy string, content []byte) *asset {
	sum := sha256.Sum256(content)
	return &asset{mediaType: mediaType, policy: policy, tag: hex.EncodeToString(sum[:16]), plain: func() []byte { return content }}
}

// mediaTypes are those of the files in assets and own, and there are no others.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".txt": "text/plain; charset=utf-8",
}

// loadAssets reads the folders assets and own.
func loadAssets(from fs.FS) (map[string]*asset, error) {
	out := map[string]*asset{}
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
		a := newAsset(mediaType, assetPolicy, content)
		if packed {
			a.packed = content
			a.plain = sync.OnceValue(func() []byte { return unpack(content) })
		}
		out[name] = a
		return nil
	})
	return out, err
}

// unpack returns what is compressed in content, which is embedded: a test holds that all
// of it can be unpacked.
func unpack(content []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		panic(fmt.Errorf("pages: an embedded file is broken: %w", err))
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		panic(fmt.Errorf("pages: an embedded file is broken: %w", err))
	}
	return plain
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3): what is named counts
// before "*", and a weight of 0 is a refusal.
func acceptsGzip(headers []string) bool {
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
