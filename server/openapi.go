package server

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/labstack/echo/v4"

	"notebox/server/dify"
)

// openAPI describes every route (OpenAPI 3.1). A test holds it to the routes
// and to real answers.
//
//go:embed openapi.json
var openAPI []byte

// openAPIServer is the address in the file, for which the own one is put in.
const openAPIServer = `"http://127.0.0.1:8080"`

// serveOpenAPI answers GET /openapi.json.
func (s *Server) serveOpenAPI(c echo.Context) error {
	own, err := json.Marshal(s.base(c.Request()))
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, bytes.Replace(wholeAPI(), []byte(openAPIServer), own, 1))
}

// wholeAPI is openAPI with what the foreign protocols' documents add to it.
var wholeAPI = sync.OnceValue(func() []byte { return withAll(openAPI, dify.OpenAPI) })

// withAll puts the paths and the responses of another document after doc's own, in their
// order. The names of both are different.
func withAll(doc, other []byte) []byte {
	type parts struct {
		Paths      json.RawMessage
		Components struct{ Responses json.RawMessage }
	}
	var own, more parts
	if err := errors.Join(json.Unmarshal(doc, &own), json.Unmarshal(other, &more)); err != nil {
		panic(fmt.Sprintf("server: a built-in OpenAPI document: %v", err))
	}
	for _, p := range [][2]json.RawMessage{{own.Paths, more.Paths}, {own.Components.Responses, more.Components.Responses}} {
		both := slices.Concat(p[0][:len(p[0])-1], []byte(","), p[1][1:])
		doc = bytes.Replace(doc, p[0], both, 1)
	}
	return doc
}
