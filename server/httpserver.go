package server

import (
	"net/http"
	"time"
)

const (
	// readHeaderTimeout is for the request line and the headers: a few hundred bytes.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is how long a kept connection waits for its next request;
	// longer than the 60 s after which common proxies close theirs.
	idleTimeout = 120 * time.Second
	// maxHeaderBytes is far above a key, a signed URL and a browser's headers. Many
	// small fields take twenty times their bytes in memory, and need no key.
	maxHeaderBytes = 16 << 10
)

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
	server.RegisterOnShutdown(s.mcp.Handler.EndStreams) // they would be waited for
	return server
}
