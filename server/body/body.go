// Package body reads the bodies of requests: JSON and forms, strictly, and within bounds of
// size, time and cost.
package body

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/executor/intake"
	"notebox/executor/problem"
)

// File is an entry of files.
type File struct {
	Name    *Text `json:"name"`
	Content *Text `json:"content"` // in base64
	Text    *Text `json:"text"`    // as it stands
	URL     *Text `json:"url"`
	ID      *Text `json:"id"`
}

// Text is a JSON string and nothing else; a plain Go string would take null.
type Text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != jsontext.KindString {
		return errors.New("must be a string")
	}
	*t = Text(tok.String())
	return nil
}

// Seconds is a JSON number of any size: one that is too large for a float64 is
// well-formed and out of range, which are different answers.
type Seconds float64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *Seconds) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != jsontext.KindNumber {
		return errors.New("must be a number")
	}
	f, err := strconv.ParseFloat(tok.String(), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	*s = Seconds(f)
	return nil
}

// jsonRules hold for every JSON text of a request.
var jsonRules = json.JoinOptions(
	json.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// Strings is a list as strings; nil for none.
func Strings(list []Text) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// TypeOf reads what a request says of its body; the media type is empty if that
// is missing or malformed.
func TypeOf(r *http.Request) (mediaType string, params map[string]string, err error) {
	for _, encoding := range strings.Split(strings.Join(r.Header.Values(echo.HeaderContentEncoding), ","), ",") {
		if encoding = strings.TrimSpace(encoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return "", nil, UnsupportedMedia("Content-Encoding: only identity is supported")
		}
	}
	if mediaType, params, err = mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil {
		return "", nil, nil
	}
	return mediaType, params, nil
}

// NotWhole says that a body ended too early.
const NotWhole = "the body did not arrive in full"

// Problem says what is wrong where a body could not be read: our own failure and
// the limits have their own answers, the rest is text's.
func Problem(err error, text string) error {
	var p *problem.Error
	var tooMany *http.MaxBytesError
	var slow *SlowError
	if errors.As(err, &p) || errors.As(err, &tooMany) || errors.As(err, &slow) || errors.Is(err, intake.ErrWorkspace) {
		return err
	}
	return problem.Malformed("", "%s", text)
}

// Query reads the query, in which nothing but those names may be, each once: a
// typing error must not be a silent default.
func Query(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.Malformed("query", "is malformed")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(names, name):
			return nil, problem.Malformed("query", "there is no parameter %s", problem.Quote(name))
		case len(values) > 1:
			return nil, problem.Malformed("query", "the parameter %s is there more than once", problem.Quote(name))
		}
	}
	return query, nil
}

// SlowError is a body that did not keep pace, as against a deadline of
// anything else, such as the store.
type SlowError struct{ Err error }

func (e *SlowError) Error() string { return "the body came too slowly: " + e.Err.Error() }

func (e *SlowError) Unwrap() error { return e.Err }

// UnsupportedMedia is a Content-Type that is not taken.
func UnsupportedMedia(format string, args ...any) *problem.Error {
	return &problem.Error{Status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf(format, args...)}
}
