package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"notebox/executor/problem"
	"notebox/server/dify"
	"notebox/server/native"
	"notebox/server/share"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// browserRules decide which pages in a browser may call.
//
// Without API keys, whoever reaches the service may run code, and a web page
// reaches loopback: by a form or a simple fetch across sites, and as "its own
// origin" by a name that it rebinds to 127.0.0.1. So on every route the Host
// must be one of the service's own names, an Origin its own or an allowed one,
// and Sec-Fetch-Site not cross-site; and no CORS header is sent. A link that a
// person follows from another site may lead to the page, to shared runs and to signed files: the
// site learns nothing of what it opens.
//
// With API keys none of that holds, since a page does not have the key, a
// browser never adds it by itself, and the routes without a key give nothing
// away: images must show in other sites' pages by their signed URLs, and a
// proxy in front may use any Host. Pages of the allowed origins, and no others,
// are let in by CORS. /mcp refuses all other Origins even so, as its protocol wants.
type browserRules struct {
	keys    bool
	hosts   map[string]bool // names of this service, lower case, IPv6 without brackets
	anyAddr bool            // listening on all addresses: then the one that was connected to counts
	public  string          // --public-url's origin; may be empty
	origins map[string]bool // allowed ones
}

// newBrowserRules takes listen as host:port; it may be empty.
func newBrowserRules(keys bool, listen, publicURL string, allowed []string) (*browserRules, error) {
	b := &browserRules{
		keys:    keys,
		hosts:   map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
		origins: map[string]bool{},
	}
	if host := hostname(listen); host != "" {
		b.hosts[host] = true
	}
	ip, err := netip.ParseAddr(hostname(listen))
	b.anyAddr = listen != "" && (hostname(listen) == "" || err == nil && ip.IsUnspecified())
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return nil, fmt.Errorf("public URL %q: it must be http(s)://host, with a path or none", publicURL)
		}
		b.hosts[hostname(u.Host)] = true
		b.public = strings.ToLower(u.Scheme + "://" + u.Host)
	}
	for _, origin := range allowed {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ContainsAny(origin, "*?") {
			return nil, fmt.Errorf("allowed origin %q: it must be scheme://host or scheme://host:port, without wildcards", origin)
		}
		b.origins[strings.ToLower(origin)] = true
	}
	return b, nil
}

// guard is the middleware for every route when there are no keys.
func (b *browserRules) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		switch {
		case b.keys, web.Passed(c): // a peer has asked these rules
		case !b.ownHost(r):
			return problem.Forbidden("the Host header does not name this service; --public-url adds a name")
		case !b.ownOrigin(r):
			return problem.Forbidden("pages of this Origin may not call this service")
		case strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site") && !isLink(r):
			return problem.Forbidden("pages of other sites may not call this service")
		}
		return next(c)
	}
}

// isLink reports whether a person has followed a link to what links may lead to: a
// navigation of a whole tab, which is no form, frame or script of another site.
func isLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.EqualFold(r.Header.Get("Sec-Fetch-Mode"), "navigate") &&
		strings.EqualFold(r.Header.Get("Sec-Fetch-Dest"), "document") &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, share.Prefix) || strings.HasPrefix(r.URL.Path, native.FilesPrefix) || strings.HasPrefix(r.URL.Path, dify.FilesPrefix))
}

// cors is the middleware that lets pages of the allowed origins in; nil where
// none may.
func (b *browserRules) cors(allowed []string) echo.MiddlewareFunc {
	if !b.keys || len(allowed) == 0 {
		return nil
	}
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: allowed,
		AllowMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowHeaders: []string{echo.HeaderAuthorization, "X-API-Key", echo.HeaderContentType, echo.HeaderAccept,
			"Idempotency-Key", "Prefer", "Range", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-ID"},
		ExposeHeaders: []string{echo.HeaderLocation, echo.HeaderRetryAfter, echo.HeaderContentDisposition, "ETag", "Preference-Applied", "Mcp-Session-Id"},
		MaxAge:        600, // seconds that a browser may keep the answer
	})
}

func (b *browserRules) ownHost(r *http.Request) bool {
	host := hostname(r.Host)
	if b.hosts[host] {
		return true
	}
	if !b.anyAddr {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && host != "" && hostname(local.String()) == host
}

func (b *browserRules) ownOrigin(r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	own := strings.ToLower(scheme + "://" + r.Host)
	for _, origin := range r.Header.Values("Origin") {
		origin = strings.ToLower(origin)
		if origin != own && (b.public == "" || origin != b.public) && !b.origins[origin] {
			return false
		}
	}
	return true
}

// known reports whether an Origin, if there is one, is the service's own or an allowed
// one, also behind a proxy that ends TLS.
func (b *browserRules) known(r *http.Request) bool {
	if b.ownOrigin(r) {
		return true
	}
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && len(r.Header.Values("Origin")) == 1 && u.Scheme == "https" && strings.EqualFold(u.Host, r.Host)
}

// hostname is the host of a Host header or an address, without port, brackets
// and zone, in lower case.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.WithZone("").String()
	}
	return strings.ToLower(host)
}
