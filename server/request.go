package server

import (
	"errors"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// request is a call of /v1/execute as it was written, in whichever form. A nil
// field was not given; null is as good as not given.
type request struct {
	Code         *text          `json:"code"`
	Cells        cellFields     `json:"cells"`
	Notebook     jsontext.Value `json:"notebook"`
	Entrypoint   *text          `json:"entrypoint"`
	Language     *text          `json:"language"`
	Files        fileFields     `json:"files"`
	Env          variables      `json:"env"`
	Dependencies packageList    `json:"dependencies"`
	Network      *bool          `json:"network"`
	Timeout      *seconds       `json:"timeout"`
	Session      *text          `json:"session"`
	StopOnError  *bool          `json:"stop_on_error"`

	inputs     executor.Inputs // Files, and the file parts of a form
	mediaType  string          // of the raw form; else empty
	linkImages bool            // ?images=url
}

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

// order is what the request asks for.
func (req *request) order() *executor.Order {
	return &executor.Order{
		Code: (*string)(req.Code), Notebook: req.Notebook, Entrypoint: (*string)(req.Entrypoint), Cells: plain(req.Cells),
		Language: (*string)(req.Language), MediaType: req.mediaType, Inputs: req.inputs, Env: req.Env.plain(),
		Dependencies: plain(req.Dependencies), Network: req.Network, Timeout: (*float64)(req.Timeout),
		Session: (*string)(req.Session), StopOnError: req.StopOnError, LinkImages: req.linkImages,
	}
}

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

// readRequest decodes the body in whichever form it is.
func (s *Server) readRequest(r *http.Request, work *intake.Workspace) (*executor.Order, error) {
	mediaType, params, err := contentOf(r)
	if err != nil {
		return nil, err
	}
	if mediaType == "" {
		return nil, unsupportedMedia("Content-Type: is missing or malformed; %s", s.formsTaken())
	}
	if charset := strings.ToLower(params["charset"]); !slices.Contains([]string{"", "utf-8", "utf8", "us-ascii"}, charset) {
		return nil, unsupportedMedia("Content-Type: the only charset is utf-8")
	}
	query, err := url.ParseQuery(r.URL.RawQuery) // r.URL.Query drops what is malformed
	if err != nil {
		return nil, problem.Malformed("query", "is malformed")
	}
	var req *request
	switch {
	case mediaType == "application/json":
		req, err = s.readJSON(r, work)
	case mediaType == formType:
		req, err = s.readForm(r, params["boundary"], work)
	case mediaType == notebookType || s.isCode(mediaType):
		req, err = s.readCode(r, mediaType, query, work)
	default:
		return nil, unsupportedMedia("Content-Type: %s is not supported; %s", problem.Quote(mediaType), s.formsTaken())
	}
	if err != nil {
		return nil, err
	}
	if err := req.readQuery(query); err != nil {
		return nil, err
	}
	return req.order(), nil
}

const (
	formType     = "multipart/form-data"      // a form with files
	notebookType = "application/x-ipynb+json" // a notebook, as Jupyter calls it
)

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

func (s *Server) isCode(mediaType string) bool {
	if mediaType == "text/plain" {
		return true
	}
	for _, e := range s.environments {
		if slices.Contains(e.MediaTypes, mediaType) {
			return true
		}
	}
	return false
}

func (s *Server) formsTaken() string {
	types := []string{"application/json", "multipart/form-data", "text/plain", notebookType}
	for _, e := range s.environments {
		types = append(types, e.MediaTypes...)
	}
	slices.Sort(types[2:])
	return "supported are " + strings.Join(slices.Compact(types), ", ")
}

// readQuery takes the query's "images", the one parameter of every form, and
// refuses what no form knows: a typing error must not be a silent default.
func (req *request) readQuery(query url.Values) error {
	for name, values := range query {
		raw := req.mediaType != "" && slices.Contains([]string{"language", "timeout", "stop_on_error", "session"}, name)
		switch {
		case name != "images" && !raw:
			return problem.Malformed("query", "there is no parameter %s", problem.Quote(name))
		case len(values) > 1:
			return problem.Malformed("query", "the parameter %s is there more than once", problem.Quote(name))
		}
	}
	switch images := query.Get("images"); images {
	case "url":
		req.linkImages = true
	case "", "data":
	default:
		return problem.Unfit("images", `must be "url", or "data", which is the default`)
	}
	return nil
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

func ptr[T any](v T) *T { return &v }
