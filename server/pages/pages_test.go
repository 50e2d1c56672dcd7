package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newPages(t *testing.T) *Pages {
	p, err := New(
		Document{Name: "one", Title: "The <first>", Path: "openapi.json"},
		Document{Name: "two", Title: "The second", Path: "two/openapi.json"},
	)
	require.NoError(t, err)
	return p
}

// get asks one of the handlers; headers are pairs.
func get(t *testing.T, handler func(http.ResponseWriter, *http.Request) bool, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	require.True(t, handler(w, r), target)
	return w
}

// file is a handler for one asset.
func (p *Pages) file(name string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool { return p.ServeAsset(w, r, name) }
}

// TestAssetsAreOfTheirPackages: each asset is what SHA256SUMS says, of the packages and
// versions that scripts/pages.sh names; `scripts/pages.sh --check` compares the packages.
func TestAssetsAreOfTheirPackages(t *testing.T) {
	p := newPages(t)
	script, err := os.ReadFile("../../scripts/pages.sh")
	require.NoError(t, err)
	sums, err := os.ReadFile("assets/SHA256SUMS")
	require.NoError(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		pkg, name := path.Split(file)
		require.Regexp(t, `(?m)^readonly \w+=`+regexp.QuoteMeta(strings.TrimSuffix(pkg, "/"))+`$`, string(script))
		require.NotNil(t, p.assets[name], name)
		actual := sha256.Sum256(p.assets[name].Plain())
		require.Equal(t, sum, hex.EncodeToString(actual[:]), file)
		known[name+".gz"] = true
	}
	entries, err := fs.ReadDir(files, "assets")
	require.NoError(t, err)
	for _, entry := range entries {
		require.True(t, known[entry.Name()], "%s is not of a package", entry.Name())
	}
}

func TestNothingIsOfAnotherHost(t *testing.T) {
	p := newPages(t)
	for _, handler := range []func(http.ResponseWriter, *http.Request) bool{p.ServeDocs, p.ServeRedoc} {
		html := get(t, handler, "/").Body.String()
		for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
			require.NotRegexp(t, `^(/|[a-z]+:)`, strings.TrimPrefix(link[1], "data:,"), "not relative")
			if name, ok := strings.CutPrefix(link[1], "docs/"); ok {
				require.NotNil(t, p.assets[name], name)
			}
		}
		require.NotRegexp(t, `<script[^>]*>[^<]|<style|\son\w+=|\sstyle=`, html, "what the policy forbids")
	}
	for name, a := range p.assets {
		require.NotContains(t, string(a.Plain()), "cdn.redoc.ly", name)
	}
}

func TestDocuments(t *testing.T) {
	p := newPages(t)
	for _, c := range []struct {
		desc, target, document, title string
	}{
		{"none named", "/docs", "openapi.json", "The &lt;first&gt;"},
		{"the first", "/docs?api=one", "openapi.json", "The &lt;first&gt;"},
		{"the second", "/docs?api=two", "two/openapi.json", "The second"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			for _, handler := range []func(http.ResponseWriter, *http.Request) bool{p.ServeDocs, p.ServeRedoc} {
				html := get(t, handler, c.target).Body.String()
				require.Contains(t, html, `data-document="`+c.document+`"`)
				require.Contains(t, html, `aria-current="page">`+c.title+`</a>`)
				require.Equal(t, 1, strings.Count(html, "aria-current"))
				require.Contains(t, html, "api=one")
				require.Contains(t, html, "api=two")
			}
		})
	}
	for _, target := range []string{"/docs?api=", "/docs?api=three", "/docs?api=https://example.org/x.json"} {
		require.False(t, p.ServeDocs(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil)), target)
	}
	require.False(t, p.ServeAsset(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), "SHA256SUMS"))
}

func TestPolicies(t *testing.T) {
	p := newPages(t)
	for _, c := range []struct {
		desc    string
		handler func(http.ResponseWriter, *http.Request) bool
		wants   []string
	}{
		{"to try", p.ServeDocs, []string{"script-src 'self'", "connect-src 'self'", "style-src 'self'"}},
		{"to read", p.ServeRedoc, []string{"script-src 'self'", "connect-src 'self'", "style-src 'self' " + emptyStyle, "font-src data:"}},
		{"a file", p.file("docs.js"), nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			h := get(t, c.handler, "/").Header()
			policy := strings.Split(h.Get("Content-Security-Policy"), "; ")
			require.Subset(t, policy, append(c.wants, "default-src 'none'", "frame-ancestors 'none'"))
			if c.wants != nil {
				require.Subset(t, policy, []string{"base-uri 'none'", "form-action 'none'"})
			}
			require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
			require.Equal(t, "no-cache", h.Get("Cache-Control"))
		})
	}
	nothing := sha256.Sum256(nil)
	require.Equal(t, "'sha256-"+base64.StdEncoding.EncodeToString(nothing[:])+"'", emptyStyle)
}
