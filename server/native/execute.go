package native

import (
	"net/http"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
)

// execute answers POST /v1/execute. A client that leaves cancels its run, unless
// that is asynchronous or has an Idempotency-Key.
func (s *handler) execute(c echo.Context) error {
	w, err := wishesOf(c.Request().Header)
	if err != nil {
		return err
	}
	if w.key == "" { // with a key it may be a request for a reply that is there
		if err := web.Caller(c).MayBeginRun(); err != nil {
			return err // before its body is read
		}
	}
	run, err := s.BeginRead(c, func(r *http.Request, work *intake.Workspace) (*executor.Order, error) {
		o, err := s.readRequest(r, work)
		if err == nil {
			o.Key, o.Detached = w.key, w.async
		}
		return o, err
	})
	if err != nil {
		return err
	}
	defer run.Leave()
	switch {
	case w.async:
		return s.answerAccepted(c, run)
	case web.WantsEvents(c.Request().Header):
		return s.answerEvents(c, run)
	}
	run.Start(executor.Silence{})
	reply, err := run.Wait(c.Request().Context())
	if err != nil {
		return err
	}
	if !run.Joined() || reply.Stored() { // what is in the store goes to the client as it is read
		return s.answerReply(c, reply)
	}
	return s.AnswerJoined(c.Request().Context(), run, reply.Size(), func() error { return s.answerReply(c, reply) })
}
