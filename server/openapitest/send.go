package openapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// Send is Try, where an error fails the test.
func (s Service) Send(t testing.TB, c Call) Answer {
	t.Helper()
	answer, err := s.Try(t.Context(), c)
	require.NoError(t, err, "%.2000s", answer.Body)
	return answer
}

// Try sends a call, and returns an error if the request or the answer is not as the
// call's document says, or the answer is not below 400.
func (s Service) Try(ctx context.Context, c Call) (answer Answer, err error) {
	textTypes()
	var pairs []string
	if s.Live != nil {
		for from, to := range s.Live(c) {
			pairs = append(pairs, from, to)
		}
	}
	replacer := strings.NewReplacer(pairs...)
	request, inPath, err := s.request(ctx, c, replacer)
	if err != nil {
		return answer, err
	}
	body, mediaType, err := encode(c.mediaType, replaced(c.body, replacer))
	if err != nil {
		return answer, err
	}
	newRequest := func() *http.Request {
		r := request.Clone(ctx)
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
	if err := openapi3filter.ValidateRequest(ctx, input); err != nil {
		return answer, fmt.Errorf("the request: %w", err)
	}
	response, err := http.DefaultTransport.RoundTrip(newRequest())
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	answer = Answer{Status: response.StatusCode, Header: response.Header}
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return answer, err
	}
	return answer, check(ctx, input, answer)
}

// check holds an answer against what the document says of it.
func check(ctx context.Context, input *openapi3filter.RequestValidationInput, answer Answer) error {
	described := input.Route.Operation.Responses.Status(answer.Status)
	switch {
	case answer.Status >= 400:
		return fmt.Errorf("the answer has the status %d", answer.Status)
	case described == nil:
		return fmt.Errorf("the answer has the status %d, which is not described", answer.Status)
	case len(described.Value.Content) == 0 && len(answer.Body) > 0:
		return fmt.Errorf("the answer has a body, which is not described")
	}
	input.Options.ExcludeResponseBody = described.Value.Content["*/*"] != nil // any bytes
	if err := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Status, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(answer.Body)), Options: input.Options,
	}); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	return nil
}

// request is the call without its body, and the values in its path.
func (s Service) request(ctx context.Context, c Call, replacer *strings.Replacer) (*http.Request, map[string]string, error) {
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
			return nil, nil, fmt.Errorf("a parameter in %s is not known here", p.in)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, c.Method, s.URL+path, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header = header
	return request, inPath, nil
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
func encode(mediaType string, v any) (body []byte, contentType string, err error) {
	switch mediaType {
	case "":
		return nil, "", nil
	case "application/json", "application/x-ipynb+json":
		body, err = json.Marshal(v)
		return body, mediaType, err
	case "multipart/form-data":
		return encodeForm(v)
	case "*/*":
		mediaType = "application/octet-stream"
	}
	text, ok := v.(string)
	if !ok {
		return nil, "", fmt.Errorf("an example of %s must be a text", mediaType)
	}
	return []byte(text), mediaType, nil
}

func encodeForm(v any) (body []byte, contentType string, err error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, "", errors.New("an example of a form must be an object")
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range fields {
		files, ok := value.([]any)
		if !ok {
			err = errors.Join(err, w.WriteField(name, fmt.Sprint(value)))
		}
		for i, content := range files {
			part, failed := w.CreateFormFile(name, fmt.Sprintf("example-%d.csv", i))
			if failed == nil {
				_, failed = fmt.Fprint(part, content)
			}
			err = errors.Join(err, failed)
		}
	}
	err = errors.Join(err, w.Close())
	return form.Bytes(), w.FormDataContentType(), err
}
