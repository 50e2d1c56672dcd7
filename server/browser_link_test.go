package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksOfOtherSites: a link that somebody follows from another site opens the page and a
// stored file. Whatever else another site does is refused as before.
func TestLinksOfOtherSites(t *testing.T) {
	s := newService(t)
	const navigate, document = "navigate", "document"
	for _, c := range []struct {
		desc, method, path, mode, dest, origin string
		status                                 int
	}{
		{desc: "the page", path: "/", mode: navigate, dest: document, status: 200},
		{desc: "its head", method: http.MethodHead, path: "/", mode: navigate, dest: document, status: 200},
		{desc: "a file, with a signature that is none", path: "/v1/files/x", mode: navigate, dest: document, status: 403},
		{desc: "a file of a tool, with none", path: "/files/x/y", mode: navigate, dest: document, status: 403},
		{desc: "a shared run, with a signature that is none", path: "/r/run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", mode: navigate, dest: document, status: 403},
		{desc: "a shared run in a frame", path: "/r/run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", mode: navigate, dest: "iframe", status: 403},
		{desc: "a shared run by fetch", path: "/r/run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", mode: "cors", dest: "empty", status: 403},
		{desc: "what shares a run", method: http.MethodPost, path: "/v1/executions/run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9/share", mode: navigate, dest: document, status: 403},
		{desc: "the page in a frame", path: "/", mode: navigate, dest: "iframe", status: 403},
		{desc: "the page by fetch", path: "/", mode: "no-cors", dest: "empty", status: 403},
		{desc: "a part of the page", path: "/page/main.js", mode: "no-cors", dest: "script", status: 403},
		{desc: "a part as a link", path: "/page/frame", mode: navigate, dest: document, status: 403},
		{desc: "a picture in a page", path: "/v1/files/x", mode: "no-cors", dest: "image", status: 403},
		{desc: "a form", method: http.MethodPost, path: "/", mode: navigate, dest: document, status: 403},
		{desc: "a form that runs code", method: http.MethodPost, path: "/v1/execute", mode: navigate, dest: document, status: 403},
		{desc: "what lists languages", path: "/v1/environments", mode: navigate, dest: document, status: 403},
		{desc: "files of another path", path: "/v1/filesystem", mode: navigate, dest: document, status: 403},
		{desc: "the documentation", path: "/docs", mode: navigate, dest: document, status: 403},
		{desc: "with an Origin", path: "/", mode: navigate, dest: document, origin: "https://evil.example", status: 403},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			method := http.MethodGet
			if c.method != "" {
				method = c.method
			}
			req := s.request(method, c.path, "", nil)
			req.Header.Set("Accept", "text/html")
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			req.Header.Set("Sec-Fetch-Mode", c.mode)
			req.Header.Set("Sec-Fetch-Dest", c.dest)
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			a := s.do(req)
			require.Equal(t, c.status, a.StatusCode, "%s", a.body)
			require.Empty(t, s.started())
			other := "other sites may not call"
			switch c.desc {
			case "a file, with a signature that is none", "a file of a tool, with none", "a shared run, with a signature that is none":
				require.NotContains(t, string(a.body), other) // it is the signature that is asked
			}
		})
	}
	t.Run("rebinding", func(t *testing.T) {
		req := s.request(http.MethodGet, "/", "", nil)
		req.Host = "evil.example"
		req.Header.Set("Accept", "text/html")
		require.Equal(t, http.StatusForbidden, s.do(req).StatusCode)
	})
}
