package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// executionsPrefix is where executions are asked for and cancelled.
const executionsPrefix = "/v1/executions/"

// settleTime is how long an asynchronous request waits for its run to be refused:
// where there is no place for it, the runner says so at once, and the client learns
// it from its request and not by asking later.
const settleTime = 50 * time.Millisecond

// runIDs are what runID makes; another text is no part of a record's key.
var runIDs = regexp.MustCompile(`^run_[0-9A-HJKMNP-TV-Z]{26}$`)

// executionState is what there is to say of an execution without a reply.
type executionState struct {
	ID     string `json:"id"`
	Status string `json:"status"` // running, ended, cancelling
}

// answerAccepted answers a request with respond-async (RFC 7240). It has been
// accepted when all that it names is there, and a lease tells others of it.
func (s *Server) answerAccepted(c echo.Context, t *ticket, w wishes) error {
	t.start(silence{})
	state := executionState{t.id, "running"}
	ctx := c.Request().Context()
	switch {
	case t.own != nil:
		if err := t.own.settle(ctx); err != nil {
			if ctx.Err() != nil && w.key == "" {
				t.own.cancel(errClientGone) // nobody will ever know its id
			}
			return err
		}
	case t.joined != nil:
		if p := t.joined.promise(); p != nil {
			return p
		}
	default:
		if stands, _, err := s.book.look(ctx, t.owner, t.id); err == nil && stands == ended {
			state.Status = "ended"
		}
	}
	h := c.Response().Header()
	h.Set(echo.HeaderLocation, executionsPrefix+t.id)
	h.Set("Preference-Applied", "respond-async")
	return s.answerState(c, http.StatusAccepted, state)
}

// settle returns when e was accepted and was not refused at once. The error is why
// it was not, or ctx's.
func (e *execution) settle(ctx context.Context) error {
	select {
	case <-e.accepted:
	case <-e.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.known:
	}
	e.settling.Lock()
	defer e.settling.Unlock()
	if e.refusal != nil {
		return e.refusal
	}
	e.answered = true
	return nil
}

// answerEvents streams an execution. Of one that was joined, the events are made of
// its reply.
func (s *Server) answerEvents(c echo.Context, t *ticket) error {
	client := c.Request().Context()
	ctx, gone := context.WithCancel(client)
	defer gone()
	var body io.ReadCloser
	defer func() {
		if body != nil {
			_ = body.Close()
		}
	}()
	return s.streamRun(c, t.id, t.limits, gone, func(to listener) (io.Reader, error) {
		t.start(to)
		if t.own == nil {
			to.accepted()
		}
		end, err := t.wait(ctx)
		switch {
		case ctx.Err() != nil && client.Err() == nil:
			return nil, nil // the stream has ended, and says why
		case err != nil:
			return nil, err
		case end.problem != nil:
			return nil, end.problem
		}
		if t.own == nil {
			// Its entries are read one by one, but each is in memory several times.
			if err := s.answerJoined(ctx, t, spoolMemory, func() error { return s.retell(ctx, end, to) }); err != nil {
				return nil, err
			}
		}
		body, _, err = end.open(ctx, s.book)
		return body, err
	})
}

// retell tells a listener what is in a reply, one entry after the other.
func (s *Server) retell(ctx context.Context, end *ending, to listener) error {
	body, _, err := end.open(ctx, s.book)
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
			err = eachOf(dec, func(entry jsontext.Value) error { to.output(json.RawMessage(entry)); return nil })
		case "files":
			err = eachOf(dec, func(entry jsontext.Value) error {
				var file fileEntry
				err := json.Unmarshal(entry, &file)
				to.file(file)
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
func (s *Server) getExecution(c echo.Context) error {
	owner, id, err := executionOf(c)
	if err != nil {
		return err
	}
	if s.running.find(owner, id) != nil {
		return s.answerState(c, http.StatusOK, executionState{id, "running"})
	}
	switch stands, failure, err := s.book.look(c.Request().Context(), owner, id); {
	case err != nil:
		return err
	case failure != nil:
		return final(failure)
	case stands == goesOn:
		return s.answerState(c, http.StatusOK, executionState{id, "running"})
	case stands == ended:
		return s.answerEnding(c, &ending{key: executionKey(owner, id, recordReply)})
	case stands == brokenOff:
		return &problem{
			status: http.StatusGone,
			text:   "the service that ran this ended before the run did: there is no result; send the request again to run it anew",
		}
	}
	return notFound()
}

// cancelExecution answers DELETE /v1/executions/{id}. A run of this process, of any
// kind, is cancelled at once, that of another service by a mark.
func (s *Server) cancelExecution(c echo.Context) error {
	owner, id, err := executionOf(c)
	if err != nil {
		return err
	}
	cancelling := executionState{id, "cancelling"}
	if e := s.running.find(owner, id); e != nil {
		e.cancel(errCancelled)
		return s.answerState(c, http.StatusAccepted, cancelling)
	}
	switch stands, _, err := s.book.look(c.Request().Context(), owner, id); {
	case err != nil:
		return err
	case stands == goesOn:
		if _, err := s.book.put(c.Request().Context(), executionKey(owner, id, recordCancel), struct{}{}); err != nil {
			return err
		}
		return s.answerState(c, http.StatusAccepted, cancelling)
	case stands == ended || stands == brokenOff:
		return c.NoContent(http.StatusNoContent)
	}
	return notFound()
}

func executionOf(c echo.Context) (owner, id string, err error) {
	if id = c.Param("id"); !runIDs.MatchString(id) {
		return "", "", notFound()
	}
	c.Set(runKey, id)
	return ownerOf(c), id, nil
}

// final is a problem of a run as the answer to a later request. "Come back later" was
// said of the run: clients and proxies that repeat a GET for it would never learn
// that this is the end.
func final(p *problem) *problem {
	told := *p
	if told.status == http.StatusServiceUnavailable || told.status == http.StatusTooManyRequests {
		told.status, told.retryAfter = http.StatusInternalServerError, 0
	}
	return &told
}

func (s *Server) answerState(c echo.Context, status int, state executionState) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return writeJSON(c, status, echo.MIMEApplicationJSON, state)
}

// answerEnding sends the reply, or returns the problem.
func (s *Server) answerEnding(c echo.Context, end *ending) error {
	if end.problem != nil {
		return end.problem
	}
	body, size, err := end.open(c.Request().Context(), s.book)
	if err != nil {
		return err
	}
	defer body.Close()
	if end.reply == nil { // it is read from the store
		direct(c)
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderContentLength, fmt.Sprint(size))
	return c.Stream(http.StatusOK, echo.MIMEApplicationJSON, body)
}
