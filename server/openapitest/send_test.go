package openapitest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// document has one operation, with all that an example can be in.
const document = `{
  "openapi": "3.1.0", "info": {"title": "x", "version": "1"},
  "paths": {"/things/{id}": {"post": {
    "operationId": "change",
    "parameters": [
      {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}, "example": "thing_1"},
      {"name": "q", "in": "query", "schema": {"type": "string"}, "example": "of thing_1"},
      {"name": "X-Note", "in": "header", "schema": {"type": "string"}, "examples": {"a": {"value": "n"}}},
      {"name": "left", "in": "query", "schema": {"type": "string"}}
    ],
    "requestBody": {"content": {"application/json": {
      "schema": {"type": "object", "required": ["of"], "properties": {"of": {"type": "array", "items": {"type": "string"}}}},
      "examples": {"one": {"value": {"of": ["thing_1"]}}, "two": {"value": {"of": ["x", "y"]}}}
    }}},
    "responses": {"200": {"description": "ok", "content": {"application/json": {
      "schema": {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}
    }}}, "204": {"description": "nothing"}}
  }}}
}`

// TestTry: what a service does that the document does not say is found.
func TestTry(t *testing.T) {
	calls := Calls(t, Load(t, []byte(document)))
	require.Len(t, calls, 2)
	require.Equal(t, "change, application/json, one", calls[0].String())
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		desc    string
		service http.HandlerFunc
		wrong   string // "": it is as described
	}{
		{"as described", answer(200, "application/json", `{"count":1}`), ""},
		{"the other way", answer(204, "", ""), ""},
		{"a field is missing", answer(200, "application/json", `{}`), "count"},
		{"a field of another type", answer(200, "application/json", `{"count":"1"}`), "integer"},
		{"no JSON", answer(200, "application/json", `{`), "decode"},
		{"another type", answer(200, "text/html", `{"count":1}`), "Content-Type"},
		{"another status", answer(201, "application/json", `{"count":1}`), "201"},
		{"a refusal", answer(422, "application/json", `{"count":1}`), "422"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := httptest.NewServer(c.service)
			t.Cleanup(s.Close)
			_, err := Service{URL: s.URL}.Try(t.Context(), calls[0])
			if c.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.wrong)
			}
		})
	}
}

// TestLiveValues stand for those in the examples, wherever these are.
func TestLiveValues(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Of []string }
		require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		require.Equal(t, []string{"a/b c"}, body.Of)
		require.Equal(t, "/things/a/b c", r.URL.Path)
		require.Equal(t, "of a/b c", r.URL.Query().Get("q"))
		require.False(t, r.URL.Query().Has("left"))
		require.Equal(t, "n", r.Header.Get("X-Note"))
		require.Equal(t, "key", r.Header.Get("X-API-Key"))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	service := Service{
		URL: s.URL, Header: http.Header{"X-Api-Key": {"key"}},
		Live: func(Call) map[string]string { return map[string]string{"thing_1": "a/b c"} },
	}
	service.Send(t, Calls(t, Load(t, []byte(document)))[0])
}

// TestBodies are written as their types want it.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		desc, mediaType string
		example         any
		contentType     string
		body            string
	}{
		{"none", "", nil, "", ""},
		{"JSON", "application/json", map[string]any{"a": 1}, "application/json", `{"a":1}`},
		{"text", "text/plain", "print(1)", "text/plain", "print(1)"},
		{"any bytes", "*/*", "a,b", "application/octet-stream", "a,b"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			body, contentType, err := encode(c.mediaType, c.example)
			require.NoError(t, err)
			require.Equal(t, c.contentType, contentType)
			require.Equal(t, c.body, string(body))
		})
	}
	body, contentType, err := encode("multipart/form-data", map[string]any{"code": "x", "files": []any{"1,2"}})
	require.NoError(t, err)
	require.Regexp(t, `^multipart/form-data; boundary=`, contentType)
	require.Contains(t, string(body), `name="files"; filename="example-0.csv"`)
	require.Contains(t, string(body), "1,2")
	for _, mediaType := range []string{"text/plain", "multipart/form-data"} {
		_, _, err = encode(mediaType, 1)
		require.Error(t, err, mediaType)
	}
}
