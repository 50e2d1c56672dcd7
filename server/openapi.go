package server

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"
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
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, bytes.Replace(openAPI, []byte(openAPIServer), own, 1))
}
