package server

import (
	"context"
	"net/http"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
)

// execute answers POST /v1/execute. A client that leaves cancels its run, unless
// that is asynchronous or has an Idempotency-Key.
func (s *Server) execute(c echo.Context) error {
	w, err := wishesOf(c.Request().Header)
	if err != nil {
		return err
	}
	if w.key == "" { // with a key it may be a request for a reply that is there
		if err := web.Caller(c).MayBeginRun(); err != nil {
			return err // before its body is read
		}
	}
	run, err := s.begin(c, w, s.readRequest)
	if err != nil {
		return err
	}
	defer run.Leave()
	switch {
	case w.async:
		return s.answerAccepted(c, run, w)
	case wantsEvents(c.Request().Header):
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
	return s.answerJoined(c.Request().Context(), run, reply.Size(), func() error { return s.answerReply(c, reply) })
}

// answerJoined calls answer, which sends a reply of so many bytes that others have too. Any
// number of requests may wait for one run: when it ends they are answered in turn, and one
// is refused if its caller leaves too much unread by then.
func (s *Server) answerJoined(ctx context.Context, run *executor.Run, size int64, answer func() error) error {
	return s.intake.InTurn(ctx, run.Owner(), size, func() error {
		if err := s.unread.MayBegin(run.Owner()); err != nil {
			return err
		}
		return answer()
	})
}

// reader decodes the body of a request for a run.
type reader func(*http.Request, *intake.Workspace) (*executor.Order, error)

// begin reads an order from a request's body, and begins its run. Where it returns a run,
// Leave must be called.
//
// Only so many requests that need the disk are taken in at one time, until what they name
// is fetched, see Config.MaxIntake: clients that send little, however slowly, keep nobody
// out. The runner admits only what is whole.
func (s *Server) begin(c echo.Context, w wishes, read reader) (*executor.Run, error) {
	r := c.Request()
	work := s.intake.Workspace(web.Owner(c))
	taken := false
	defer func() {
		if !taken { // by an error, or by a panic
			work.Clear(r.Context())
		}
	}()
	o, err := read(r, work)
	if err != nil {
		return nil, err
	}
	taken, o.Work = true, work
	o.Base, o.Key, o.Detached, o.Sent = s.base(r), w.key, w.async, web.OutgoingOf(c).WhenSent
	return s.beginOrder(c, o)
}

// beginOrder begins a run of a request's caller.
func (s *Server) beginOrder(c echo.Context, o *executor.Order) (*executor.Run, error) {
	if o.Session != nil && executor.IsSessionID(*o.Session) {
		web.NoteSession(c, *o.Session)
	}
	run, err := s.executor.Begin(c.Request().Context(), web.Caller(c), o)
	if err == nil {
		web.NoteRun(c, run.ID)
	}
	return run, err
}
