package server

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"
)

// inside sends requests to the service's own routes without a connection: for protocols
// that are made of calls of the native API. What it serves is the API itself, with the
// caller's key and limits; only the rules for browsers are not asked again, and the
// request does not count twice.
type inside struct{ handler http.Handler }

// insideKey marks the context of such a request.
type insideKey struct{}

func isInside(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

// Do implements mcp.Doer. The response is there when its head is; the end of the request's
// context, or closing the body, ends what is still being sent.
func (i inside) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), insideKey{}, true))
	own := req.WithContext(ctx)
	own.RequestURI = own.URL.RequestURI()
	own.RemoteAddr = "inside"
	if own.Host == "" {
		own.Host = own.URL.Host
	}
	if own.URL.Scheme == "https" {
		own.TLS = new(tls.ConnectionState)
	}
	if own.Body == nil {
		own.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &insideWriter{header: http.Header{}, out: out, head: make(chan struct{})}
	go func() {
		defer cancel()
		defer func() {
			if recover() != nil { // an answer that was cut off on purpose
				w.WriteHeader(http.StatusInternalServerError)
				_ = out.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		i.handler.ServeHTTP(w, own)
		w.WriteHeader(http.StatusOK)
		_ = out.Close()
	}()
	select {
	case <-w.head:
	case <-ctx.Done(): // what it writes from now on fails
		_ = body.CloseWithError(ctx.Err())
		<-w.head // so that nothing of the request is in use any more
		return nil, ctx.Err()
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.sent, ContentLength: contentLength(w.sent),
		Body: &insideBody{body, cancel}, Request: req, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// insideBody ends the request where it is not read to its end.
type insideBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *insideBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// insideWriter gives what a handler writes to who called.
type insideWriter struct {
	header, sent http.Header
	status       int
	head         chan struct{}
	once         sync.Once
	out          *io.PipeWriter
}

func (w *insideWriter) Header() http.Header { return w.header }

func (w *insideWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.head)
	})
}

func (w *insideWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.out.Write(p)
	return n, err
}

// contentLength is what the head says, -1 where it does not.
func contentLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get(echo.HeaderContentLength), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Flush implements http.Flusher: nothing is held back.
func (w *insideWriter) Flush() { w.WriteHeader(http.StatusOK) }
