package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"notebox/server/body"

	"github.com/labstack/echo/v4"
)

// What a client must keep up with. A run may take minutes, so there is no
// deadline for a whole request; what is bounded is a client that does not send
// or does not read.
const (
	// readHeaderTimeout is for the request line and the headers: a few hundred bytes.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is how long a kept connection waits for its next request;
	// longer than the 60 s after which common proxies close theirs.
	idleTimeout = 120 * time.Second
	// maxHeaderBytes is far above a key, a signed URL and a browser's headers. Many
	// small fields take twenty times their bytes in memory, and need no key.
	maxHeaderBytes = 16 << 10
	// bodyGrace is what a body may take apart from its size, bodyRate the bytes
	// a second that it must come with beyond that: a bad mobile connection. What
	// is beyond bodySlow bytes must come at largeRate, since the body holds a place.
	bodyGrace = 15 * time.Second
	bodyRate  = 16 << 10
	bodySlow  = 1 << 20
	largeRate = 64 << 10
	// writeGrace is what a client may take for writePiece bytes of what is sent, and
	// apart from the size for the whole; writeRate the bytes a second that it must read
	// beyond that. So a small answer may be read at 2 KiB a second, and the larger one
	// is, the nearer to writeRate: as much as bodies must come with.
	writeGrace = 30 * time.Second
	writePiece = 64 << 10
	writeRate  = bodyRate
	// drainTime and drainBytes bound what is still read of a body that was
	// refused: many clients do not look at the answer before all is sent, and
	// would see a reset connection in place of the 4xx.
	drainTime  = 5 * time.Second
	drainBytes = 64 << 20
)

// pace holds the times that tests shorten: the two grace times, and those of
// streams and of the store, where 0 is the default.
type pace struct {
	body, write time.Duration
	head, alive time.Duration
	stall       time.Duration // of the store, for uploads, inputs and files that are served
}

// HTTPServer is an http.Server for Handler, with its deadlines set.
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Addr:              s.listen,
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	s.connections.guard(server)
	server.RegisterOnShutdown(s.mcp.EndStreams) // they would be waited for
	return server
}

// keepPace gives every request body and every write of a response its deadline.
func (s *Server) keepPace(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w, r := c.Response().Writer, c.Request()
		conn := http.NewResponseController(w)
		// A deadline that is left over from the connection's last response
		// would fail a "100 Continue". Errors are those of writers that know no
		// deadlines, such as httptest's, here and below.
		_ = conn.SetWriteDeadline(time.Time{})
		c.Response().Writer = &pacedWriter{ResponseWriter: w, conn: conn, grace: s.pace.write}
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, conn: conn, start: time.Now(), grace: s.pace.body}
			// Also for a body that nobody here reads: net/http does, a part of it.
			_ = conn.SetReadDeadline(body.start.Add(body.grace))
			// A copy, as net/http looks at the type of its own request's body.
			r = r.WithContext(r.Context())
			r.Body = body
			c.SetRequest(r)
		}
		return next(c)
	}
}

// bodyTime is how long so many bytes may take: 25 MiB some 7 minutes, 512 MiB two hours.
func bodyTime(bytes int64) time.Duration {
	return time.Duration(min(bytes, bodySlow)/bodyRate+max(0, bytes-bodySlow)/largeRate) * time.Second
}

type pacedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	start time.Time
	grace time.Duration
	read  int64
	left  time.Time // when the last Read returned
	ended bool
}

func (b *pacedBody) Read(p []byte) (int, error) {
	now := time.Now()
	if !b.left.IsZero() {
		b.start = b.start.Add(now.Sub(b.left)) // a slow disk or store is not the client's fault
	}
	defer func() { b.left = time.Now() }()
	due := b.start.Add(b.grace + bodyTime(b.read))
	if quiet := now.Add(b.grace); quiet.Before(due) { // what came fast earns no long pause
		due = quiet
	}
	_ = b.conn.SetReadDeadline(due)
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		b.ended = true
		// From here on net/http reads only to notice that the client left; that
		// must not time out.
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &body.SlowError{Err: err}
	}
	return n, err
}

// drain reads on for a while when the answer is that the body is not wanted.
func (s *Server) drain(r *http.Request, status int) {
	b, ok := r.Body.(*pacedBody)
	if !ok || b.ended || r.Header.Get("Expect") != "" {
		return
	}
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		b.start, b.read, b.grace = time.Now(), 0, min(b.grace, drainTime)
		_, _ = io.CopyN(io.Discard, b, drainBytes)
	}
}

type pacedWriter struct {
	http.ResponseWriter
	conn  *http.ResponseController
	grace time.Duration
	sent  int64
	took  time.Duration // for sent; a run, or a store, that is waited for is not the client's fault
}

// Write gives every piece its own deadline: one for the whole of a large reply
// would have to be so late that it could be held without reading it.
func (w *pacedWriter) Write(p []byte) (int, error) {
	written := 0
	for {
		piece := p[written:min(len(p), written+writePiece)]
		begun := time.Now()
		left := w.grace + time.Duration(w.sent/writeRate)*time.Second - w.took
		_ = w.conn.SetWriteDeadline(begun.Add(min(w.grace, left)))
		n, err := w.ResponseWriter.Write(piece)
		written += n
		w.sent += int64(n)
		w.took += time.Since(begun)
		if err != nil {
			return written, &unsentError{err}
		}
		if written == len(p) {
			return written, nil
		}
	}
}

// unsentError is a client that left, or did not read, while it was answered.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "the answer was not sent: " + e.err.Error() }

func (e *unsentError) Unwrap() error { return e.err }

func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
