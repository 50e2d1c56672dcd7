package server

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksOfOtherSites: a link that somebody follows from another site opens the page, a stored
// file and a shared run. Whatever else another site does is refused, though the link is good.
func TestLinksOfOtherSites(t *testing.T) {
	s := newService(t)
	sharing(s, picture(""))
	reply := s.replied(s.postJSON(`{"code":"x"}`))
	file, image := strings.TrimPrefix(reply.Files[0]["url"].(string), s.url), strings.TrimPrefix(reply.Images[0]["url"].(string), s.url)
	run := strings.TrimPrefix(s.shared("", reply.ID).URL, s.url)
	before := len(s.started())
	const navigate, document = "navigate", "document"
	for _, c := range []struct {
		desc, method, path, mode, dest, origin string
		opens                                  bool
	}{
		{desc: "the page", path: "/", mode: navigate, dest: document, opens: true},
		{desc: "its head", method: http.MethodHead, path: "/", mode: navigate, dest: document, opens: true},
		{desc: "a file", path: file, mode: navigate, dest: document, opens: true},
		{desc: "an image", path: image, mode: navigate, dest: document, opens: true},
		{desc: "a shared run", path: run, mode: navigate, dest: document, opens: true},
		{desc: "a shared run in a frame", path: run, mode: navigate, dest: "iframe"},
		{desc: "a shared run by fetch", path: run, mode: "cors", dest: "empty"},
		{desc: "a shared run with an Origin", path: run, mode: navigate, dest: document, origin: "https://evil.example"},
		{desc: "what shares a run", method: http.MethodPost, path: sharePath(reply.ID), mode: navigate, dest: document},
		{desc: "what revokes its link", method: http.MethodDelete, path: sharePath(reply.ID), mode: "cors", dest: "empty"},
		{desc: "the page in a frame", path: "/", mode: navigate, dest: "iframe"},
		{desc: "the page by fetch", path: "/", mode: "no-cors", dest: "empty"},
		{desc: "a part of the page", path: "/page/main.js", mode: "no-cors", dest: "script"},
		{desc: "a part as a link", path: "/page/frame", mode: navigate, dest: document},
		{desc: "a picture in a page", path: image, mode: "no-cors", dest: "image"},
		{desc: "a file in a frame", path: file, mode: navigate, dest: "iframe"},
		{desc: "a form", method: http.MethodPost, path: "/", mode: navigate, dest: document},
		{desc: "a form that runs code", method: http.MethodPost, path: "/v1/execute", mode: navigate, dest: document},
		{desc: "what lists languages", path: "/v1/environments", mode: navigate, dest: document},
		{desc: "files of another path", path: "/v1/filesystem", mode: navigate, dest: document},
		{desc: "the documentation", path: "/docs", mode: navigate, dest: document},
		{desc: "with an Origin", path: "/", mode: navigate, dest: document, origin: "https://evil.example"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			req := s.request(cmp.Or(c.method, http.MethodGet), c.path, "", nil)
			req.Header.Set("Accept", "text/html")
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			req.Header.Set("Sec-Fetch-Mode", c.mode)
			req.Header.Set("Sec-Fetch-Dest", c.dest)
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			a := s.do(req)
			require.Len(t, s.started(), before)
			if c.opens {
				require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
				return
			}
			require.Equal(t, http.StatusForbidden, a.StatusCode, "%s", a.body)
			require.Regexp(t, "pages of (other sites|this Origin) may not call this service", string(a.body), "it is refused for where it comes from")
		})
	}
	s.t = t
	require.Equal(t, http.StatusOK, s.seen(run).StatusCode, "nobody has revoked it")
	t.Run("rebinding", func(t *testing.T) {
		req := s.request(http.MethodGet, "/", "", nil)
		req.Host = "evil.example"
		req.Header.Set("Accept", "text/html")
		a := s.do(req)
		require.Equal(t, http.StatusForbidden, a.StatusCode)
		require.Contains(t, string(a.body), "the Host header does not name this service")
	})
}
