package server

import (
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/executor/problem"
	"notebox/server/pages"
	"notebox/server/web"
)

// documentTitles are those of the OpenAPI documents that the pages can show, by the paths
// at which they are served, in the order of the pages.
var documentTitles = []pages.Document{
	{Name: "native", Title: "The API", Path: "/openapi.json"},
	{Name: "dify", Title: "The tool for Dify", Path: "/dify/openapi.json"},
}

// newPages returns the pages for those of the documents that there are routes of.
func newPages(routes []web.Route) (*pages.Pages, error) {
	var documents []pages.Document
	for _, d := range documentTitles {
		for _, r := range routes {
			if r.Path == d.Path {
				d.Path = strings.TrimPrefix(d.Path, "/")
				documents = append(documents, d)
				break
			}
		}
	}
	return pages.New(documents...)
}

// serveDocs answers GET /docs.
func (s *Server) serveDocs(c echo.Context) error {
	if !s.pages.ServeDocs(c.Response(), c.Request()) {
		return problem.NotFound()
	}
	return nil
}

// serveRedoc answers GET /redoc.
func (s *Server) serveRedoc(c echo.Context) error {
	if !s.pages.ServeRedoc(c.Response(), c.Request()) {
		return problem.NotFound()
	}
	return nil
}

// servePageAsset answers GET /docs/…: what the two pages are made of.
func (s *Server) servePageAsset(c echo.Context) error {
	if !s.pages.ServeAsset(c.Response(), c.Request(), c.Param("asset")) {
		return problem.NotFound()
	}
	return nil
}
