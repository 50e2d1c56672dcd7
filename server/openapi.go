package server

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"

	"notebox/environments"
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
	own, err := json.Marshal(s.Base(c.Request()))
	if err != nil {
		return err
	}
	// In parts: a copy for each reader that is slow would be memory that anybody can take.
	before, after, _ := bytes.Cut(s.openAPI, []byte(openAPIServer))
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.Header().Set(echo.HeaderContentLength, strconv.Itoa(len(before)+len(own)+len(after)))
	w.WriteHeader(http.StatusOK)
	for _, part := range [][]byte{before, own, after} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// withMediaTypes adds those of the environments to the bodies that /v1/execute takes.
// x-language says which language code of the type is in.
func withMediaTypes(doc []byte, all []environments.Environment) ([]byte, error) {
	var known struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct{ Content json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(doc, &known); err != nil {
		return nil, err
	}
	content := known.Paths["/v1/execute"].Post.RequestBody.Content
	var there map[string]json.RawMessage
	if err := json.Unmarshal(content, &there); err != nil {
		return nil, err
	}
	added := map[string]any{}
	for _, e := range all {
		for _, mediaType := range e.MediaTypes {
			if there[mediaType] == nil {
				added[mediaType] = map[string]any{"schema": map[string]string{"type": "string", "format": "binary", "description": "Code in " + e.DisplayName}, "x-language": e.Language}
			}
		}
	}
	if len(added) == 0 {
		return doc, nil
	}
	more, err := json.Marshal(added)
	// text/plain stays the last: of several types for code, clients that are generated send that.
	last := bytes.Index(content, []byte(`"text/plain"`))
	return bytes.Replace(doc, content, slices.Concat(content[:last], more[1:len(more)-1], []byte(","), content[last:]), 1), err
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
