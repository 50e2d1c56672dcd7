package web

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
	// bodyGrace is what a body may take apart from its size, bodyRate the bytes
	// a second that it must come with beyond that: a bad mobile connection. What
	// is beyond bodySlow bytes must come at largeRate, since the body holds a place.
	bodyGrace = 15 * time.Second
	bodyRate  = 16 << 10
	bodySlow  = 1 << 20
	largeRate = 64 << 10
	// WriteGrace is what a client may take for WritePiece bytes of what is sent, and
	// apart from the size for the whole; writeRate the bytes a second that it must read
	// beyond that. So a small answer may be read at 2 KiB a second, and the larger one
	// is, the nearer to writeRate: as much as bodies must come with.
	WriteGrace = 30 * time.Second
	WritePiece = 64 << 10
	writeRate  = bodyRate
	// drainTime and drainBytes bound what is still read of a body that was
	// refused: many clients do not look at the answer before all is sent, and
	// would see a reset connection in place of the 4xx.
	drainTime  = 5 * time.Second
	drainBytes = 64 << 20
)

// Pace holds the times that tests shorten: the two grace times, and those of
// streams and of the store, where 0 is the default.
type Pace struct {
	Body, Write time.Duration
	Head, Alive time.Duration
	Stall       time.Duration // of the store, for uploads, inputs and files that are served
}

// Keep gives every request body and every write of a response its deadline.
func (p *Pace) Keep(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w, r := c.Response().Writer, c.Request()
		conn := http.NewResponseController(w)
		// A deadline that is left over from the connection's last response
		// would fail a "100 Continue". Errors are those of writers that know no
		// deadlines, such as httptest's, here and below.
		_ = conn.SetWriteDeadline(time.Time{})
		c.Response().Writer = &PacedWriter{ResponseWriter: w, Conn: conn, Grace: p.Write}
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, conn: conn, start: time.Now(), grace: p.Body}
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

// NewPace returns the times of a service whose store may stall for so long.
func NewPace(stall time.Duration) Pace { return Pace{Body: bodyGrace, Write: WriteGrace, Stall: stall} }

// BodyTime is how long so many bytes may take: 25 MiB some 7 minutes, 512 MiB two hours.
func BodyTime(bytes int64) time.Duration {
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
	due := b.start.Add(b.grace + BodyTime(b.read))
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

// Drain reads on for a while when the answer is that the body is not wanted.
func Drain(r *http.Request, status int) {
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

// PacedWriter gives each piece that it writes a deadline.
type PacedWriter struct {
	http.ResponseWriter
	Conn  *http.ResponseController
	Grace time.Duration
	sent  int64
	took  time.Duration // for sent; a run, or a store, that is waited for is not the client's fault
}

// Write gives every piece its own deadline: one for the whole of a large reply
// would have to be so late that it could be held without reading it.
func (w *PacedWriter) Write(p []byte) (int, error) {
	written := 0
	for {
		piece := p[written:min(len(p), written+WritePiece)]
		begun := time.Now()
		left := w.Grace + time.Duration(w.sent/writeRate)*time.Second - w.took
		_ = w.Conn.SetWriteDeadline(begun.Add(min(w.Grace, left)))
		n, err := w.ResponseWriter.Write(piece)
		written += n
		w.sent += int64(n)
		w.took += time.Since(begun)
		if err != nil {
			return written, &UnsentError{err}
		}
		if written == len(p) {
			return written, nil
		}
	}
}

// UnsentError is a client that left, or did not read, while it was answered.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return "the answer was not sent: " + e.Err.Error() }

func (e *UnsentError) Unwrap() error { return e.Err }

func (w *PacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
