package native

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// executionsPrefix is where executions are asked for and cancelled.
const executionsPrefix = "/v1/executions/"

// ExecutionState is what there is to say of an execution without a reply.
type ExecutionState struct {
	ID     string `json:"id"`
	Status string `json:"status"` // running, ended, cancelling
}

// answerAccepted answers a request with respond-async (RFC 7240). It has been
// accepted when all that it names is there, and a lease tells others of it.
func (s *handler) answerAccepted(c echo.Context, run *executor.Run) error {
	run.Start(executor.Silence{})
	hasEnded, err := run.Accepted(c.Request().Context())
	if err != nil {
		return err
	}
	state := ExecutionState{run.ID, "running"}
	if hasEnded {
		state.Status = "ended"
	}
	h := c.Response().Header()
	h.Set(echo.HeaderLocation, executionsPrefix+run.ID)
	h.Set("Preference-Applied", "respond-async")
	return s.answerState(c, http.StatusAccepted, state)
}

// answerEvents streams an execution. Of one that was joined, the events are made of
// its reply.
func (s *handler) answerEvents(c echo.Context, run *executor.Run) error {
	client := c.Request().Context()
	ctx, gone := context.WithCancel(client)
	defer gone()
	var body io.ReadCloser
	defer func() {
		if body != nil {
			_ = body.Close()
		}
	}()
	return s.StreamRun(c, run.ID, run.Limits, gone, func(to executor.Listener) (io.Reader, error) {
		run.Start(to)
		if run.Joined() {
			to.Accepted()
		}
		reply, err := run.Wait(ctx)
		switch {
		case ctx.Err() != nil && client.Err() == nil:
			return nil, nil // the stream has ended, and says why
		case err != nil:
			return nil, err
		}
		if run.Joined() {
			// Its entries are read one by one, but each is in memory several times.
			if err := s.AnswerJoined(ctx, run, intake.SpoolMemory, func() error { return retell(ctx, reply, to) }); err != nil {
				return nil, err
			}
		}
		body, _, err = reply.Open(ctx)
		return body, err
	})
}

// retell tells a listener what is in a reply, one entry after the other.
func retell(ctx context.Context, reply *executor.Reply, to executor.Listener) error {
	body, _, err := reply.Open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	dec := jsontext.NewDecoder(body)
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("stored reply: %w", err)
	}
	for err == nil && dec.PeekKind() == jsontext.KindString {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		switch name.String() {
		case "outputs":
			err = eachOf(dec, func(entry jsontext.Value) error { to.Output(json.RawMessage(entry)); return nil })
		case "files":
			err = eachOf(dec, func(entry jsontext.Value) error {
				var file executor.File
				err := json.Unmarshal(entry, &file)
				to.File(file)
				return err
			})
		default:
			err = dec.SkipValue()
		}
	}
	if err != nil {
		return fmt.Errorf("stored reply: %w", err)
	}
	return nil
}

// eachOf calls do with each element of the array that comes next.
func eachOf(dec *jsontext.Decoder, do func(jsontext.Value) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		value, err := dec.ReadValue()
		if err == nil {
			err = do(value)
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// getExecution answers GET /v1/executions/{id}.
func (s *handler) getExecution(c echo.Context) error {
	owner, id, err := executionOf(c)
	if err != nil {
		return err
	}
	switch state, reply, err := s.Executor.Find(c.Request().Context(), owner, id); {
	case err != nil:
		return err
	case state == ledger.Ended:
		return s.answerReply(c, reply)
	case state == ledger.Running:
		return s.answerState(c, http.StatusOK, ExecutionState{id, "running"})
	case state == ledger.BrokenOff:
		return &problem.Error{
			Status: http.StatusGone,
			Text:   "the service that ran this ended before the run did: there is no result; send the request again to run it anew",
		}
	}
	return problem.NotFound()
}

// cancelExecution answers DELETE /v1/executions/{id}.
func (s *handler) cancelExecution(c echo.Context) error {
	owner, id, err := executionOf(c)
	if err != nil {
		return err
	}
	gently, err := flagOf(c.QueryParams(), "interrupt")
	if err != nil {
		return err
	}
	switch state, err := s.Executor.Cancel(c.Request().Context(), owner, id, gently); {
	case err != nil:
		return err
	case state == ledger.Running:
		return s.answerState(c, http.StatusAccepted, ExecutionState{id, "cancelling"})
	case state == ledger.Unknown:
		return problem.NotFound()
	}
	return c.NoContent(http.StatusNoContent)
}

// flagOf is a boolean of a query; false if it is not there.
func flagOf(query url.Values, name string) (bool, error) {
	set := new(bool)
	if !query.Has(name) {
		return false, nil
	}
	err := body.BoolField(name, &set).Set([]byte(query.Get(name)))
	return *set, err
}

func executionOf(c echo.Context) (owner, id string, err error) {
	if id = c.Param("id"); !executor.IsRunID(id) {
		return "", "", problem.NotFound()
	}
	web.NoteRun(c, id)
	return web.Owner(c), id, nil
}

func (s *handler) answerState(c echo.Context, status int, state ExecutionState) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return web.WriteJSON(c, status, echo.MIMEApplicationJSON, state)
}

// answerReply sends a reply.
func (s *handler) answerReply(c echo.Context, reply *executor.Reply) error {
	body, size, err := reply.Open(c.Request().Context())
	if err != nil {
		return err
	}
	defer body.Close()
	if reply.Stored() {
		web.Direct(c)
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderContentLength, fmt.Sprint(size))
	return c.Stream(http.StatusOK, echo.MIMEApplicationJSON, body)
}
