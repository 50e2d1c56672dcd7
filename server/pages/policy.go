package pages

import "notebox/server/asset"

// docsPolicy and redocPolicy are the pages' Content-Security-Policy. Redoc has a font of
// its icons in its script.
var (
	docsPolicy  = asset.Policy("style-src 'self'")
	redocPolicy = asset.Policy("style-src 'self' "+emptyStyle, "font-src data:")
)

// emptyStyle is the hash of no content at all. Redoc adds style elements without content,
// and puts its rules in by the CSSOM, which needs no permission; a style element that has
// any text stays forbidden.
const emptyStyle = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
