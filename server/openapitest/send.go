package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"
)

// Service is a service that serves what a document describes.
type Service struct {
	URL    string      // what the document's paths are below
	Header http.Header // sent with each request: keys; may be nil
	// Live returns, before a call is sent, what is sent in place of values in its examples,
	// also where they are a part of a value. May be nil.
	Live func(Call) map[string]string
}

// Answer is what a service answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// textTypes are types that are text to us, and that kin-openapi has no decoder for.
var textTypes = sync.OnceFunc(func() {
	for _, name := range []string{"text/html", "text/css", "text/javascript", "text/x-python", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(name, openapi3filter.PlainBodyDecoder)
	}
})

// Send sends a call, and checks the request and the answer against the call's document.
func (s Service) Send(t testing.TB, c Call) Answer {
	t.Helper()
	textTypes()
	live := map[string]string{}
	if s.Live != nil {
		live = s.Live(c)
	}
	var pairs []string
	for from, to := range live {
		pairs = append(pairs, from, to)
	}
	replacer := strings.NewReplacer(pairs...)
	request, inPath := s.request(t, c, replacer)
	body, mediaType := encode(t, c.mediaType, replaced(c.body, replacer))
	newRequest := func() *http.Request {
		r := request.Clone(t.Context())
		if c.mediaType != "" {
			r.Header.Set("Content-Type", mediaType)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return r
	}
	input := &openapi3filter.RequestValidationInput{
		Request: newRequest(), PathParams: inPath,
		Route:   &routers.Route{Spec: c.doc, Path: c.Path, PathItem: c.item, Method: c.Method, Operation: c.Operation},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	require.NoError(t, openapi3filter.ValidateRequest(t.Context(), input))

	response, err := http.DefaultTransport.RoundTrip(newRequest())
	require.NoError(t, err)
	defer response.Body.Close()
	answer := Answer{Status: response.StatusCode, Header: response.Header}
	answer.Body, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, answer.Status, 400, "%.2000s", answer.Body)
	described := c.Operation.Responses.Status(answer.Status)
	require.NotNil(t, described, "status %d is not described", answer.Status)
	input.Options.ExcludeResponseBody = described.Value.Content["*/*"] != nil // any bytes
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Status, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(answer.Body)), Options: input.Options,
	}), "%.2000s", answer.Body)
	return answer
}

// request is the call without its body, and the values in its path.
func (s Service) request(t testing.TB, c Call, replacer *strings.Replacer) (*http.Request, map[string]string) {
	t.Helper()
	path, inPath, query, header := c.Path, map[string]string{}, url.Values{}, s.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for _, p := range c.parameters {
		value := replacer.Replace(p.value)
		switch p.in {
		case openapi3.ParameterInPath:
			inPath[p.name] = value
			path = strings.ReplaceAll(path, "{"+p.name+"}", (&url.URL{Path: value}).EscapedPath())
		case openapi3.ParameterInQuery:
			query.Set(p.name, value)
		case openapi3.ParameterInHeader:
			header.Set(p.name, value)
		default:
			t.Fatalf("%s: a parameter in %s is not known here", c, p.in)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(t.Context(), c.Method, s.URL+path, nil)
	require.NoError(t, err)
	request.Header = header
	return request, inPath
}

// replaced is an example with each text in it replaced.
func replaced(v any, replacer *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return replacer.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = replaced(v[i], replacer)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = replaced(v[k], replacer)
		}
		return out
	}
	return v
}

// encode writes a body as its media type wants it. In a form, each entry of a list is the
// content of a file.
func encode(t testing.TB, mediaType string, v any) (body []byte, contentType string) {
	t.Helper()
	switch {
	case mediaType == "":
		return nil, ""
	case mediaType == "application/json":
		body, err := json.Marshal(v)
		require.NoError(t, err)
		return body, mediaType
	case mediaType == "multipart/form-data":
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		for name, value := range v.(map[string]any) {
			files, ok := value.([]any)
			if !ok {
				require.NoError(t, w.WriteField(name, fmt.Sprint(value)))
			}
			for i, content := range files {
				part, err := w.CreateFormFile(name, fmt.Sprintf("example-%d.csv", i))
				require.NoError(t, err)
				_, err = io.WriteString(part, content.(string))
				require.NoError(t, err)
			}
		}
		require.NoError(t, w.Close())
		return form.Bytes(), w.FormDataContentType()
	}
	text, ok := v.(string)
	require.True(t, ok, "an example of %s must be a text", mediaType)
	return []byte(text), mediaType
}
