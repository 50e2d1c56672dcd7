package pages

import "strings"

// docsPolicy and redocPolicy are the pages' Content-Security-Policy. Redoc has a font of
// its icons in its script.
var (
	docsPolicy  = policy("style-src 'self'")
	redocPolicy = policy("style-src 'self' "+emptyStyle, "font-src data:")
)

// emptyStyle is the hash of no content at all. Redoc adds style elements without content,
// and puts its rules in by the CSSOM, which needs no permission; a style element that has
// any text stays forbidden.
const emptyStyle = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"

// policy is what a page may do, with what is its own: load from this service and call it.
// Nobody may frame it. data: and blob: are the tools' own icons, and images in replies.
func policy(own ...string) string {
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
