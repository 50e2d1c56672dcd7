package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// WantsEvents reports whether an Accept header (RFC 9110, section 12.5.1) names
// text/event-stream and does not prefer JSON to it. A wildcard names nothing: it
// is what clients send that never heard of events. If both are named alike,
// the client knows of events, and can read them.
func WantsEvents(h http.Header) bool {
	events, json, wildcard := 0.0, -1.0, 0.0
	for item := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		mediaType, params, err := mime.ParseMediaType(item)
		if err != nil {
			continue // as if it were not there
		}
		q := quality(params["q"])
		switch mediaType {
		case "text/event-stream":
			events = max(events, q)
		case "application/json":
			json = max(json, q)
		case "application/*", "*/*":
			wildcard = max(wildcard, q)
		}
	}
	if json < 0 { // the more specific one counts
		json = wildcard
	}
	return events > 0 && events >= json
}

// quality reads a weight, which is 1 if there is none and 0 if it is none.
func quality(q string) float64 {
	if q == "" {
		return 1
	}
	weight, err := strconv.ParseFloat(q, 64)
	if err != nil || !(weight >= 0 && weight <= 1) { // nor NaN
		return 0
	}
	return weight
}
