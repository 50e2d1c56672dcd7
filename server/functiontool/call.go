package functiontool

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/agent/tool"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/server/web"
)

// toolRequest is a POST /v1/tools/call as it was written. A nil field was not given.
type toolRequest struct {
	Call     jsontext.Value `json:"call"` // as the model emitted it
	Notation *body.Text     `json:"notation"`
	Budget   *body.Seconds  `json:"budget"` // tokens
	Images   *body.Text     `json:"images"`

	// These are the application's, and as of /v1/execute; the model's timeout is at
	// most the one here.
	Session  *body.Text     `json:"session"`
	Language *body.Text     `json:"language"` // of a call that names none
	Files    body.Files     `json:"files"`
	Env      body.Variables `json:"env"`
	Network  *bool          `json:"network"`
	Timeout  *body.Seconds  `json:"timeout"`

	languages []tool.Language // that the call may be in
	call      tool.Call
	options   tool.Options
}

// toolAnswer is the answer of POST /v1/tools/call.
type toolAnswer struct {
	Message  any           `json:"message"` // that goes back to the model
	Notation tool.Notation `json:"notation"`
	Ran      bool          `json:"ran"`
	Code     string        `json:"code"`     // that was run; "" where the call could not be read
	Language string        `json:"language"` // that it is in
	// Dependencies are the packages that it named.
	Dependencies []string         `json:"dependencies,omitempty"`
	Result       *executor.Result `json:"result"` // null if nothing was run
}

// callTool answers POST /v1/tools/call. A call that cannot be read or run as the model
// wrote it is answered with a message for the model; only what the application sent
// beside it can make the request wrong.
func (s *handler) callTool(c echo.Context) error {
	if err := web.Caller(c).MayBeginRun(); err != nil {
		return err // before its body is read
	}
	var asked *toolRequest
	run, err := s.BeginRead(c, func(r *http.Request, work *intake.Workspace) (*executor.Order, error) {
		read, err := s.readToolRequest(r, work)
		if err != nil {
			return nil, err
		}
		asked = read
		if asked.languages, err = s.languagesOfCall(web.Caller(c), asked); err != nil {
			return nil, err
		}
		return asked.order(s.MaxTimeout, work)
	})
	if err != nil {
		return s.refuse(c, asked, err)
	}
	defer run.Leave()
	run.Start(executor.Silence{})
	if _, err := run.Wait(c.Request().Context()); err != nil {
		return s.refuse(c, asked, err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, toolAnswerOf(asked, run.Language(), run.Result()))
}

// errAbout is of a call that asks about the tool, and wants nothing to be run.
var errAbout = errors.New("the call is about the tool")

// refuse answers a call that was not run: with what it asks about the tool, or with a message for the model, if it can do
// something about it.
func (s *handler) refuse(c echo.Context, asked *toolRequest, err error) error {
	if errors.Is(err, errAbout) {
		about := s.AboutTool()
		about.Languages, about.Session = asked.languages, asked.Session != nil
		return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, toolAnswer{Message: tool.Told(asked.call, about), Notation: asked.call.Notation})
	}
	why := asked.ofModel(err)
	if why == nil {
		return err
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON,
		toolAnswer{Message: tool.Refusal(asked.call, why), Notation: asked.call.Notation})
}

// languagesOfCall are those that a call may be in, the one that it is in without saying so
// first: in a session that session's, and bash beside it.
func (s *handler) languagesOfCall(caller *access.Caller, asked *toolRequest) ([]tool.Language, error) {
	wanted := ""
	if asked.Language != nil {
		wanted = string(*asked.Language)
	}
	if asked.Session == nil {
		return s.ToolLanguages(caller, wanted)
	}
	var live *environments.Environment
	switch session, err := s.Executor.FindSession(caller, string(*asked.Session)); {
	case err == nil: // else the run is refused
		live = s.Executor.ByName(session.Info().Environment)
	case errors.As(err, new(*runner.ElsewhereError)): // which knows the session's languages
		return nil, err
	}
	command := executor.IsBash(wanted)
	if live != nil && (wanted == "" || command) {
		wanted = live.Language
	}
	all, err := s.LanguagesBeside(live, caller, wanted)
	beside := tool.Language{Name: executor.Bash, Aliases: executor.BashNames()}
	if command {
		return slices.Insert(all, 0, beside), err
	}
	return append(all, beside), err
}

func toolAnswerOf(asked *toolRequest, language string, a *executor.Result) toolAnswer {
	out := toolAnswer{
		Message:  tool.Message(asked.call, web.ToolResult(a), asked.options),
		Notation: asked.call.Notation, Ran: true, Code: asked.call.Code, Language: language, Dependencies: asked.call.Dependencies,
	}
	slim := *a
	slim.Images = slices.Clone(a.Images)
	for i := range slim.Images { // they are in the message, or not wanted
		slim.Images[i].Data = nil
	}
	out.Result = &slim
	return out
}

// ofModel is what a model is told of an error, nil if the model can do nothing about it.
func (asked *toolRequest) ofModel(err error) error {
	var call *tool.CallError
	var p *problem.Error
	switch {
	case asked == nil:
		return nil
	case errors.As(err, &call):
		return call
	case errors.As(err, &p) && p.Field == "language" && p.Status == http.StatusUnprocessableEntity && asked.call.Language != "":
		return &tool.CallError{Reason: "its language " + p.Text}
	}
	return web.OfModel(err)
}

// order is what is run. Its error is a *tool.CallError where the call is no good.
func (asked *toolRequest) order(maxTimeout time.Duration, work *intake.Workspace) (*executor.Order, error) {
	if err := asked.read(); err != nil {
		return nil, err
	}
	if asked.call.About {
		return nil, errAbout
	}
	o := &executor.Order{
		Code: &asked.call.Code, Session: (*string)(asked.Session), Env: asked.Env.Strings(),
		Network: asked.Network, Timeout: (*float64)(asked.Timeout), LinkImages: !asked.options.ImageParts,
		Dependencies: asked.call.Dependencies,
	}
	if asked.Session != nil && len(o.Dependencies) > 0 {
		return nil, tool.ErrSessionPackages
	}
	switch {
	case asked.call.Language != "":
		o.Language = &asked.call.Language
	case asked.Session == nil || asked.Language != nil:
		o.Language = &asked.languages[0].Name
	}
	if wanted := min(asked.call.Timeout, maxTimeout).Seconds(); wanted > 0 && (o.Timeout == nil || wanted < *o.Timeout) {
		o.Timeout = &wanted
	}
	return o, asked.Files.MoveTo(&o.Inputs, work)
}

// read checks the fields and reads the call.
func (asked *toolRequest) read() (err error) {
	var want tool.Notation
	if asked.Notation != nil {
		if want, err = notationOf(string(*asked.Notation)); err != nil {
			return err
		}
	}
	if b := asked.Budget; b != nil {
		f := float64(*b)
		if f != math.Trunc(f) || f < tool.MinBudget || f > tool.MaxBudget {
			return problem.Unfit("budget", "must be a whole number of tokens from %d to %d", tool.MinBudget, tool.MaxBudget)
		}
		asked.options.Budget = int(f)
	}
	if asked.Images != nil {
		switch *asked.Images {
		case "url":
		case "parts":
			asked.options.ImageParts = true
		default:
			return problem.Unfit("images", `must be "parts", or "url", which is the default`)
		}
	}
	if len(asked.Call) == 0 || string(asked.Call) == "null" {
		return problem.Malformed("call", "is missing: it is the tool call as the model emitted it")
	}
	asked.call, err = tool.Parse(asked.Call, want, asked.languages...)
	return err
}

// readToolRequest decodes the body.
func (s *handler) readToolRequest(r *http.Request, work *intake.Workspace) (*toolRequest, error) {
	if _, err := body.Query(r); err != nil {
		return nil, err
	}
	mediaType, _, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	if mediaType != echo.MIMEApplicationJSON {
		return nil, body.UnsupportedMedia("Content-Type: a tool call is sent as application/json")
	}
	asked := new(toolRequest)
	return asked, s.Bodies.Text(r, work, func(raw []byte) error {
		if len(raw) == 0 {
			return body.Empty()
		}
		return decodeToolRequest(raw, asked)
	})
}

// decodeToolRequest is strict with all but the call: what is wrong in that is for
// tool.Parse.
func decodeToolRequest(raw []byte, asked *toolRequest) error {
	err := body.DecodeJSON("", raw, asked)
	var p *problem.Error
	if !errors.As(err, &p) || p.Field != "call" && !strings.HasPrefix(p.Field, "call.") && !strings.HasPrefix(p.Field, "call[") {
		return err
	}
	call, from, to := findCall(raw)
	if call == nil {
		return err
	}
	*asked = toolRequest{}
	if err := body.DecodeJSON("", slices.Concat(raw[:from], []byte("0"), raw[to:]), asked); err != nil {
		return err
	}
	asked.Call = call
	return nil
}

// findCall returns the value of call and where it is in raw, also if it has invalid
// UTF-8 or a name twice; nil if it is no JSON.
func findCall(raw []byte) (call jsontext.Value, from, to int64) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != jsontext.KindBeginObject {
		return nil, 0, 0
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() == jsontext.KindString {
		name, _ := dec.ReadToken()
		is := name.String() == "call"
		value, err := dec.ReadValue()
		switch {
		case err != nil:
			return nil, 0, 0
		case is:
			to = dec.InputOffset()
			return slices.Clone(value), to - int64(len(value)), to
		}
	}
	return nil, 0, 0
}
