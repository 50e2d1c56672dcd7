package share

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor/problem"
	"notebox/server/page"
	"notebox/server/web"
)

// content is the record of a run, as JSON.
type content = io.ReadCloser

// show answers GET /r/{id}.
func (s *handler) show(c echo.Context) error {
	shared, run, err := s.opened(c)
	if err != nil {
		return err
	}
	defer run.Close()
	sending := http.NewResponseController(c.Response())
	view := s.views.begin(viewed{shared.Owner, shared.ID}, func() { _ = sending.SetWriteDeadline(time.Now()) })
	if view == nil {
		return &problem.Error{Status: problem.StatusUnavailable, Text: "too many shared runs are being looked at", RetryAfter: viewRetry}
	}
	defer s.views.end(view)
	h := c.Response().Header()
	h.Set("X-Robots-Tag", robots)
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Add(echo.HeaderVary, echo.HeaderAccept)
	web.Direct(c)
	if wantsHTML(c) {
		err = s.page.ServeRecord(c.Response(), c.Request(), page.Record{
			Title: shared.Title, Head: s.head(c, shared), Run: bytesFirst(run), Plots: shared.Plots, Widgets: shared.Widgets,
		})
	} else {
		err = c.Stream(http.StatusOK, echo.MIMEApplicationJSON, run)
	}
	if s.views.end(view); err == nil && view.isCut {
		err = os.ErrDeadlineExceeded // its connection is of no use any more
	}
	if err != nil && c.Response().Committed {
		s.Log.WarnContext(c.Request().Context(), "a shared page was not sent in full", "error", err)
		panic(http.ErrAbortHandler) // it has no length by which the visitor would notice
	}
	return err
}

// viewRetry is when to come back for a page: most are sent within it.
const viewRetry = 2 * time.Second

// bytesFirst hides what else a reader can do, so that it is written as it is read.
func bytesFirst(r io.Reader) io.Reader { return struct{ io.Reader }{r} }

// wantsHTML is the case unless JSON is asked for and pages are not: programs that look at a
// link for a chat often accept anything.
func wantsHTML(c echo.Context) bool {
	accept := c.Request().Header.Get(echo.HeaderAccept)
	return strings.Contains(accept, "text/html") || !strings.Contains(accept, echo.MIMEApplicationJSON)
}

// plainly tells a person in a browser what is wrong with a link.
func (s *handler) plainly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		var p *problem.Error
		if !errors.As(err, &p) || c.Response().Committed || !strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/html") ||
			p.Status != problem.StatusForbidden && p.Status != problem.StatusNotFound {
			return err
		}
		if s.Refused(p); p.Status == problem.StatusNotFound {
			p = &problem.Error{Status: p.Status, Text: "nothing is shared here, or not any more"}
		}
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set(echo.HeaderCacheControl, "no-store")
		h.Set("X-Robots-Tag", robots)
		var page bytes.Buffer
		fmt.Fprintf(&page, notice, html.EscapeString(p.Text))
		return c.HTMLBlob(int(p.Status), page.Bytes())
	}
}

const notice = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>notebox</title>
<style>body { max-width: 36em; margin: 20vh auto; padding: 0 1.5em; font: 17px/1.5 system-ui, sans-serif }</style>
<main><h1>Not to be seen</h1><p>Sorry: %s.</p></main>
</html>
`
