package ask

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/agent"
	"notebox/agent/tool"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/web"
)

// Config is what POST /run answers with.
type Config struct {
	Provider agent.Provider
	Prompt   string // in addition to the agent's own
	Limits   agent.Limits
	AtOnce   int // questions that are answered at one time; 0 is DefaultAtOnce
}

const (
	// DefaultAtOnce is more than run code at a time on most machines: a question
	// waits for its model most of the time.
	DefaultAtOnce = 16
	// retry is when to come back for a place: a question takes some ten seconds.
	retry = 10 * time.Second
	// backlog bounds what waits for a client that reads slowly, in bytes.
	backlog = 8 << 20
)

// noAgent tells the caller's operator what to do.
const noAgent = "no model is configured: set OPENAI_API_KEY (and OPENAI_BASE_URL for another server that speaks its API), or ANTHROPIC_API_KEY, " +
	"or CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID, and --model to name the model, and start the service again"

// Answer is the answer of POST /run. No list in it is ever null.
type Answer struct {
	Output  string        `json:"output"`
	Steps   []agent.Step  `json:"steps"`
	Images  []image       `json:"images"`
	Files   []tool.File   `json:"files"`
	Stopped agent.Stopped `json:"stopped"`
	Usage   usage         `json:"usage"`
}

type image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	URL       string `json:"url"`
	Error     string `json:"error,omitempty"`
}

type usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

// ask answers POST /run, and POST /foo, as older programs call it.
func (s *handler) ask(c echo.Context) error {
	caller := web.Caller(c)
	if err := caller.MayBeginRun(); err != nil {
		return err // before its body is read
	}
	work := s.Intake.Workspace(caller.Owner())
	defer work.Clear(c.Request().Context())
	asked, err := s.readQuestion(c.Request(), work)
	var missing *missingInput
	switch {
	case errors.As(err, &missing):
		return web.WriteJSON(c, http.StatusBadRequest, echo.MIMEApplicationJSON, missing.body())
	case err != nil:
		return err
	case s.questions == nil:
		return &problem.Error{Status: http.StatusServiceUnavailable, Text: noAgent, RetryAfter: time.Minute}
	}
	leave, err := s.questions.Enter(caller.Owner())
	if err != nil {
		return err
	}
	defer web.OutgoingOf(c).WhenSent(leave)
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(s.Executor.Life(), cancel)()
	id, err := executor.NewID("ask_", s.Now())
	if err != nil {
		return err
	}
	web.NoteRun(c, id)
	about := s.AboutTool()
	if about.Languages, err = s.ToolLanguages(caller, ""); err != nil {
		return err // the caller's key has no language
	}
	a, err := s.questions.agent(&runs{s, caller, s.Base(c.Request())}, about)
	if err != nil {
		return err
	}
	files, err := s.given(ctx, caller.Owner(), &asked.inputs, work)
	if err != nil {
		return s.Executor.WhyNot(c.Request().Context(), err)
	}
	work.Leave()
	ask := func(sink agent.Sink) (*Answer, error) {
		answer, err := a.Ask(ctx, agent.Question{Text: asked.text(), Files: files}, sink)
		if err != nil {
			return nil, s.ofAgent(ctx, err)
		}
		s.Log.InfoContext(ctx, "question", "question", id, "owner", caller.Owner(), "runs", len(answer.Steps), "stopped", string(answer.Stopped),
			"tokens_in", answer.Usage.In, "tokens_out", answer.Usage.Out)
		return answerOf(answer), nil
	}
	if web.WantsEvents(c.Request().Header) {
		return s.streamAgent(c, id, cancel, ask)
	}
	answer, err := ask(nil)
	if err != nil || ctx.Err() != nil {
		return s.Executor.WhyNot(c.Request().Context(), err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}

// streamAgent tells of a question while it is answered: started, text, again, call,
// output, turn, and in the end done or error.
func (s *handler) streamAgent(c echo.Context, id string, gone func(), ask func(agent.Sink) (*Answer, error)) error {
	return s.Stream(c, id, backlog, gone, func(e *web.EventStream) (io.Reader, error) {
		e.Accepted()
		a, err := ask(func(ev agent.Event) { e.Put(string(ev.Kind), event{ev.Role, ev.Text, ev.Step}) })
		if err != nil {
			return nil, err
		}
		answer, err := executor.EncodeJSON(a)
		return bytes.NewReader(answer), err
	})
}

// event is the data of an event.
type event struct {
	Role string      `json:"role"`
	Text string      `json:"text,omitempty"`
	Step *agent.Step `json:"step,omitempty"`
}

func answerOf(a *agent.Answer) *Answer {
	out := &Answer{
		Output: a.Text, Steps: append([]agent.Step{}, a.Steps...), Images: []image{}, Files: append([]tool.File{}, a.Files...),
		Stopped: a.Stopped, Usage: usage{a.Usage.In, a.Usage.Out},
	}
	for _, i := range a.Images {
		out.Images = append(out.Images, image{i.Name, i.MediaType, i.URL, i.Error})
	}
	return out
}

// ofAgent gives the failure of a question its public face.
func (s *handler) ofAgent(ctx context.Context, err error) error {
	var p *problem.Error
	var ofModel interface {
		Public() string
		Passes() bool
	}
	switch {
	case ctx.Err() != nil || errors.As(err, &p):
		return err
	case errors.As(err, &ofModel) && ofModel.Passes():
		return &problem.Error{Status: http.StatusServiceUnavailable, Text: ofModel.Public(), RetryAfter: retry, Cause: err}
	case errors.As(err, &ofModel):
		return &problem.Error{Status: http.StatusBadGateway, Text: ofModel.Public(), Cause: err}
	}
	return err
}

// questions are the questions that are answered at a time.
type questions struct {
	config Config
	intake.Places
}

func newQuestions(c *Config, share func() bool) *questions {
	if c == nil {
		return nil
	}
	most := cmp.Or(c.AtOnce, DefaultAtOnce)
	return &questions{*c, intake.Places{Most: most, Share: share, What: "questions", Are: "are being answered", RetryAfter: retry}}
}

// agent is one for a caller: it is made of little.
func (a *questions) agent(e agent.Executor, about tool.About) (*agent.Agent, error) {
	return agent.New(agent.Config{
		Code: agent.Mind{Provider: a.config.Provider, Prompt: a.config.Prompt}, Executor: e, About: about, Limits: a.config.Limits,
	})
}
