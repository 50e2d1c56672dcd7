package page

import (
	"embed"
	"fmt"
	"net/http"
	"sync"

	"notebox/server/asset"
)

//go:embed assets/*.gz assets/*.woff2
var assets embed.FS

//go:embed html/index.html
var indexHTML []byte

//go:embed html/frame.html
var frameHTML []byte

//go:embed html/status.html
var statusHTML []byte

// Page is the page and what it is made of.
type Page struct {
	index, frame, status *asset.Asset
	assets               map[string]*asset.Asset // by name
	scripts              sync.Map                // by name: see writeScript
}

// New returns the page.
func New() (*Page, error) {
	files, err := asset.Load(assets)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return &Page{
		index:  asset.Page(pagePolicy, indexHTML),
		frame:  asset.Page(framePolicy, frameHTML),
		status: asset.Page(pagePolicy, statusHTML),
		assets: files,
	}, nil
}

// Serve answers GET / to a browser.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request) bool { return p.index.Serve(w, r) }

// ServeStatus answers GET /status.
func (p *Page) ServeStatus(w http.ResponseWriter, r *http.Request) bool {
	return p.status.Serve(w, r)
}

// ServeFrame answers GET /page/frame.
func (p *Page) ServeFrame(w http.ResponseWriter, r *http.Request) bool {
	unconnected(w.Header(), "()")
	return p.frame.Serve(w, r)
}

// unconnected is for a page that may hold code that nobody trusts. WebRTC and connections
// ahead of a request are in no policy of contents. Browsers that know this header have none of
// them, but to those that allowed names.
func unconnected(h http.Header, allowed string) {
	h.Set("X-DNS-Prefetch-Control", "off") // a name that is looked up tells something too
	h.Set("Connection-Allowlist", allowed)
}

// ServeAsset answers GET /page/NAME, and false if there is no such file.
func (p *Page) ServeAsset(w http.ResponseWriter, r *http.Request, name string) bool {
	return p.assets[name].Serve(w, r)
}
