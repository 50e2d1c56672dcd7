package pages

import (
	"embed"
	"fmt"
	"html"
	"net/http"
	"strings"

	"notebox/server/asset"
)

// Document is an OpenAPI document that the pages show.
type Document struct {
	Name  string // in the page's address: ?api=NAME
	Title string
	Path  string // where it is served
}

// Pages are the two pages for some documents.
type Pages struct {
	docs, redoc map[string]*asset.Asset // by the document's name
	first       string
	assets      map[string]*asset.Asset // by name
}

//go:embed page.html
var pageHTML string

//go:embed assets/*.gz own
var files embed.FS

// page is what page.html is filled with.
type page struct {
	Path, Tool, Licence string
	Other, OtherDoes    string
	Styles              []string
	Library, Script     string // run before; run as a module
	Documents           []Document
	policy              string
}

// New returns the pages for these documents, of which there is at least one; the first is
// shown where the address names none.
func New(documents ...Document) (*Pages, error) {
	assets, err := asset.Load(files)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	p := &Pages{assets: assets, first: documents[0].Name}
	p.docs = render(page{
		Path: "docs", Tool: "Swagger UI", Licence: "swagger-ui.LICENSE.txt", Other: "redoc", OtherDoes: "Read",
		Styles: []string{"swagger-ui.css", "page.css"}, Library: "swagger-ui-bundle.js", Script: "docs.js",
		Documents: documents, policy: docsPolicy,
	})
	p.redoc = render(page{
		Path: "redoc", Tool: "Redoc", Licence: "redoc.LICENSE.txt", Other: "docs", OtherDoes: "Try it",
		Styles: []string{"page.css"}, Script: "redoc.js",
		Documents: documents, policy: redocPolicy,
	})
	return p, nil
}

// render fills page.html in for each document. A template's package would look methods up
// by their names, and so keep the linker from leaving out what nobody calls: a quarter of
// the program.
func render(with page) map[string]*asset.Asset {
	out := map[string]*asset.Asset{}
	for _, document := range with.Documents {
		var links, styles, library strings.Builder
		for _, d := range with.Documents {
			current := ""
			if d.Name == document.Name {
				current = ` aria-current="page"`
			}
			fmt.Fprintf(&links, "<a href=\"%s?api=%s\"%s>%s</a>\n", with.Path, html.EscapeString(d.Name), current, html.EscapeString(d.Title))
		}
		for _, style := range with.Styles {
			fmt.Fprintf(&styles, "<link rel=\"stylesheet\" href=\"docs/%s\">\n", style)
		}
		if with.Library != "" {
			fmt.Fprintf(&library, "<script defer src=\"docs/%s\"></script>\n", with.Library)
		}
		filled := strings.NewReplacer(
			"{title}", html.EscapeString(document.Title), "{name}", html.EscapeString(document.Name), "{path}", html.EscapeString(strings.TrimPrefix(document.Path, "/")),
			"{documents}", links.String(), "{styles}", styles.String(), "{library}", library.String(), "{script}", with.Script,
			"{other}", with.Other, "{otherDoes}", with.OtherDoes, "{licence}", with.Licence, "{tool}", with.Tool,
		).Replace(pageHTML)
		out[document.Name] = asset.Page(with.policy, []byte(filled))
	}
	return out
}

// ServeDocs answers GET /docs, and false if the request names a document that there is not.
func (p *Pages) ServeDocs(w http.ResponseWriter, r *http.Request) bool { return p.serve(p.docs, w, r) }

// ServeRedoc answers GET /redoc, and false if the request names a document that there is not.
func (p *Pages) ServeRedoc(w http.ResponseWriter, r *http.Request) bool {
	return p.serve(p.redoc, w, r)
}

func (p *Pages) serve(pages map[string]*asset.Asset, w http.ResponseWriter, r *http.Request) bool {
	name := p.first
	if q := r.URL.Query(); q.Has("api") {
		name = q.Get("api")
	}
	return pages[name].Serve(w, r)
}

// ServeAsset answers GET /docs/NAME, and false if there is no such file.
func (p *Pages) ServeAsset(w http.ResponseWriter, r *http.Request, name string) bool {
	return p.assets[name].Serve(w, r)
}
