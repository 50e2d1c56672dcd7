package egress

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
)

// forwarded are headers that ReverseProxy takes out, as a server's proxy must. In
// the request of a program they are the program's own.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// transport is one for requests that the proxy reads. It keeps connections for the run
// alone, and knows no proxy of the host's: that would resolve names by itself.
func (s *session) transport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            s.dial,
		TLSClientConfig:        s.proxy.outside,
		DisableCompression:     true, // bodies pass as they are
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// reverseProxy passes requests on as they are, without the headers that concern
// one hop.
func (s *session) reverseProxy(transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			for _, name := range forwarded {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = slices.Clone(values)
				}
			}
			s.proxy.credential(r.Out.URL).signIn(r.Out)
		},
		ModifyResponse: func(answer *http.Response) error {
			return s.proxy.credential(answer.Request.URL).receive(answer)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			s.refuse(w, r.URL.Host, err)
		},
	}
}

// tunnel answers CONNECT: bytes go both ways until both sides have ended.
func (s *session) tunnel(w http.ResponseWriter, r *http.Request) error {
	if err := s.proxy.allow(r.URL.Host); err != nil {
		return err
	}
	outside, err := s.dial(r.Context(), "tcp", r.URL.Host)
	if err != nil {
		return err
	}
	defer outside.Close()
	inside, from, stop, err := connected(s.ctx, w)
	if inside == nil {
		return err
	}
	defer inside.Close()
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(outside, from); err != nil {
			outside.Close() // and so the other direction
			return
		}
		closeWrite(outside)
	}()
	if _, err := io.Copy(inside, outside); err != nil {
		reset(inside)
		outside.Close()
	} else {
		closeWrite(inside)
	}
	<-sent
	return nil
}

// connected says to the program that its CONNECT succeeded, and returns its connection. from
// reads the connection, first what came with the request. inside is nil, without an
// error, if the program has gone. The end of ctx closes the connection, until stop is called.
func connected(ctx context.Context, w http.ResponseWriter) (inside net.Conn, from io.Reader, stop func() bool, err error) {
	inside, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, nil, err
	}
	stop = context.AfterFunc(ctx, func() { inside.Close() })
	if _, err := io.WriteString(inside, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		stop()
		inside.Close()
		return nil, nil, nil, nil
	}
	early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered())) // which is not used beyond that
	return inside, io.MultiReader(early, inside), stop, nil
}

// closeWrite ends one direction.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

// reset ends a connection so that its program does not take it for a good end.
func reset(c net.Conn) {
	switch c := c.(type) {
	case interface{ Reset() error }:
		_ = c.Reset()
	case *net.TCPConn:
		_ = c.SetLinger(0)
		_ = c.Close()
	default:
		_ = c.Close()
	}
}
