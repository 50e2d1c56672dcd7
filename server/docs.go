package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/executor/problem"
	"notebox/server/pages"
)

// documentTitles are those of the OpenAPI documents that the pages show, by the paths at
// which they are served, in the order of the pages.
var documentTitles = []pages.Document{
	{Name: "native", Title: "The API", Path: "/openapi.json"},
	{Name: "dify", Title: "The tool for Dify", Path: "/dify/openapi.json"},
}

// answerWith answers with what serve has, or that there is none.
func answerWith(serve func(http.ResponseWriter, *http.Request) bool) echo.HandlerFunc {
	return func(c echo.Context) error { return found(serve(c.Response(), c.Request())) }
}

// servePageAsset answers GET /docs/…: what the pages are made of.
func (s *Server) servePageAsset(c echo.Context) error {
	return found(s.pages.ServeAsset(c.Response(), c.Request(), c.Param("asset")))
}

// servePagePart answers GET /page/…: what the page at / is made of.
func (s *Server) servePagePart(c echo.Context) error {
	return found(s.page.ServeAsset(c.Response(), c.Request(), c.Param("asset")))
}

func found(there bool) error {
	if !there {
		return problem.NotFound()
	}
	return nil
}
