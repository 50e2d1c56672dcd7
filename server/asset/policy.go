package asset

import "strings"

// Policy is the Content-Security-Policy of a page: what it may do, with what is its own. It
// may load from this service and call it. Nobody may frame it. data: and blob: are icons, and
// images in replies.
func Policy(own ...string) string {
	return strings.Join(append(own,
		"default-src 'none'",
		"script-src 'self'",
		"img-src 'self' data: blob:",
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	), "; ")
}
