package page

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newPage(t *testing.T) *Page {
	t.Helper()
	p, err := New()
	require.NoError(t, err)
	return p
}

func get(t *testing.T, serve func(http.ResponseWriter, *http.Request) bool) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	require.True(t, serve(w, httptest.NewRequest(http.MethodGet, "/", nil)))
	return w
}

// TestPolicies: the page runs the scripts of the service alone, and the frame has neither its
// origin nor a network.
func TestPolicies(t *testing.T) {
	p := newPage(t)
	page := strings.Split(get(t, p.Serve).Header().Get("Content-Security-Policy"), "; ")
	require.ElementsMatch(t, page, []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "font-src 'self'", "img-src 'self' data: blob:",
		"connect-src 'self'", "frame-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	})
	frame := get(t, p.ServeFrame).Header()
	policy := strings.Split(frame.Get("Content-Security-Policy"), "; ")
	require.Subset(t, policy, []string{"sandbox allow-scripts", "default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'"})
	for _, rule := range policy {
		require.NotRegexp(t, `allow-same-origin|https?:|\*`, rule)
		if !strings.HasPrefix(rule, "frame-ancestors") {
			require.NotContains(t, rule, "'self'")
		}
		require.NotRegexp(t, `^(connect|frame|child)-src`, rule, "default-src 'none' is theirs")
	}
	require.Equal(t, "()", frame.Get("Connection-Allowlist"))
}

// TestNothingIsOfAnotherHost: all that the page names is below it, and there.
func TestNothingIsOfAnotherHost(t *testing.T) {
	p := newPage(t)
	html := get(t, p.Serve).Body.String()
	parts := 0
	for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if strings.HasPrefix(link[1], "data:") || strings.HasPrefix(link[1], "#") {
			continue
		}
		require.NotRegexp(t, `^(/|[a-z]+:)`, link[1], "not relative")
		if name, ok := strings.CutPrefix(link[1], "page/"); ok {
			require.NotNil(t, p.assets[name], name)
			parts++
		}
	}
	require.Greater(t, parts, 3)
	require.NotRegexp(t, `<script[^>]*>[^<]|<style|\son\w+=|\sstyle=`, html, "what the policy forbids")
	for name, a := range p.assets {
		require.NotEmpty(t, a.Plain(), name)
	}
	for name, a := range p.assets {
		if strings.HasSuffix(name, ".css") {
			require.False(t, regexp.MustCompile(`url\(["']?https?:|@import`).Match(a.Plain()), name)
		}
	}
}

// TestLicences: what others wrote has its licence beside it.
func TestLicences(t *testing.T) {
	text := string(newPage(t).assets["licences.txt"].Plain())
	for _, name := range []string{"@codemirror/view", "@lezer/common", "dompurify", "katex", "marked", "plotly.js-dist-min", "@jupyter-widgets/html-manager", "style-mod"} {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(name)+` \d+\.\d+\.\d+ \(`, text)
	}
}
