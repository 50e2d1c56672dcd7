package server

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/executor/intake"
	"notebox/executor/problem"
)

// fileField is an entry of files.
type fileField struct {
	Name    *text `json:"name"`
	Content *text `json:"content"` // in base64
	Text    *text `json:"text"`    // as it stands
	URL     *text `json:"url"`
	ID      *text `json:"id"`
}

// text is a JSON string and nothing else; a plain Go string would take null.
type text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != jsontext.KindString {
		return errors.New("must be a string")
	}
	*t = text(tok.String())
	return nil
}

// seconds is a JSON number of any size: one that is too large for a float64 is
// well-formed and out of range, which are different answers.
type seconds float64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *seconds) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
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
	*s = seconds(f)
	return nil
}

// jsonRules hold for every JSON text of a request.
var jsonRules = json.JoinOptions(
	json.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// plain is a list as strings; nil for none.
func plain(list []text) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// contentOf reads what a request says of its body; the media type is empty where that
// is missing or malformed.
func contentOf(r *http.Request) (mediaType string, params map[string]string, err error) {
	for _, encoding := range strings.Split(strings.Join(r.Header.Values(echo.HeaderContentEncoding), ","), ",") {
		if encoding = strings.TrimSpace(encoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return "", nil, unsupportedMedia("Content-Encoding: only identity is supported")
		}
	}
	if mediaType, params, err = mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil {
		return "", nil, nil
	}
	return mediaType, params, nil
}

const notWhole = "the body did not arrive in full"

// ofBody says what is wrong where a body could not be read: our own failure and
// the limits have their own answers, the rest is text's.
func ofBody(err error, text string) error {
	var p *problem.Error
	var tooMany *http.MaxBytesError
	var slow *slowBodyError
	if errors.As(err, &p) || errors.As(err, &tooMany) || errors.As(err, &slow) || errors.Is(err, intake.ErrWorkspace) {
		return err
	}
	return problem.Malformed("", "%s", text)
}

// parseSeconds reads a number of a form or a query.
func parseSeconds(field, s string) (*seconds, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, problem.Malformed(field, "must be a number")
	}
	if math.IsNaN(f) {
		return nil, problem.Unfit(field, "must be a number of seconds above 0")
	}
	out := seconds(f)
	return &out, nil
}

// parseBool reads a truth value of a form or a query.
func parseBool(field, s string) (*bool, error) {
	switch strings.ToLower(s) {
	case "true", "1":
		return new(true), nil
	case "false", "0":
		return new(false), nil
	}
	return nil, problem.Malformed(field, "must be true or false")
}


// parameters reads the query, in which nothing but those names may be, each once: a
// typing error must not be a silent default.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.Malformed("query", "is malformed")
	}
	for name, values := range query {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		switch {
		case !known:
			return nil, problem.Malformed("query", "there is no parameter %s", problem.Quote(name))
		case len(values) > 1:
			return nil, problem.Malformed("query", "the parameter %s is there more than once", problem.Quote(name))
		}
	}
	return query, nil
}

// slowBodyError is a body that did not keep pace, as against a deadline of
// anything else, such as the store.
type slowBodyError struct{ err error }

func (e *slowBodyError) Error() string { return "the body came too slowly: " + e.err.Error() }

func (e *slowBodyError) Unwrap() error { return e.err }

func unsupportedMedia(format string, args ...any) *problem.Error {
	return &problem.Error{Status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf(format, args...)}
}
