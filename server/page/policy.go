package page

import (
	"strings"

	"notebox/server/asset"
)

// pagePolicy is the page's Content-Security-Policy. A frame of it may only show what is of
// this service, so that code in a frame cannot go to another host with what it knows.
var pagePolicy = asset.Policy("style-src 'self'", "font-src 'self'", "frame-src 'self'")

// framePolicy is of the frame in which code that nobody trusts may run: without the origin of
// this service, and so without its keys, and without any network.
var framePolicy = strings.Join(append([]string{"sandbox allow-scripts", "frame-ancestors 'self'"}, frameRules...), "; ")

// recordPolicy is of a record that this service serves. What holds in a frame holds in all of
// it. A person may save files, which frames in it may not. A link of an output that opens
// another page does nothing.
var recordPolicy = strings.Join(append([]string{
	"sandbox allow-scripts allow-downloads", "frame-ancestors 'none'",
}, frameRules...), "; ")

var frameRules = []string{
	"default-src 'none'",
	"script-src 'unsafe-inline' 'unsafe-eval' blob:",
	"style-src 'unsafe-inline'",
	"img-src data: blob:",
	"media-src data: blob:",
	"font-src data:",
	"worker-src blob:",
	"base-uri 'none'",
	"form-action 'none'",
}
