package native

import (
	"net/http"
	"strings"

	"notebox/executor/problem"
)

// maxIdempotencyKey is as long as other services take them; it is a UUID mostly.
const maxIdempotencyKey = 255

// wishes are what a caller says beside the request itself, in headers.
type wishes struct {
	async bool   // Prefer: respond-async
	key   string // Idempotency-Key; empty if there is none
}

func wishesOf(h http.Header) (wishes, error) {
	w := wishes{async: prefers(h.Values("Prefer"), "respond-async")}
	const name = "Idempotency-Key"
	switch keys := h.Values(name); {
	case len(keys) == 0:
		return w, nil
	case len(keys) > 1:
		return w, problem.Malformed(name, "is there more than once")
	case len(keys[0]) == 0 || len(keys[0]) > maxIdempotencyKey:
		return w, problem.Malformed(name, "must have 1 to %d characters", maxIdempotencyKey)
	case strings.ContainsFunc(keys[0], func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return w, problem.Malformed(name, "must be visible ASCII without spaces")
	default:
		w.key = keys[0]
		return w, nil
	}
}

// prefers reports whether a preference is among those of the Prefer headers (RFC
// 7240). Others are ignored, as it asks; so are values and parameters.
func prefers(headers []string, preference string) bool {
	for _, header := range headers {
		quoted := false
		for item := range strings.FieldsFuncSeq(header, func(r rune) bool {
			if r == '"' { // no preference of ours has an escape in its value
				quoted = !quoted
			}
			return r == ',' && !quoted
		}) {
			name, _, _ := strings.Cut(item, ";")
			name, _, _ = strings.Cut(name, "=")
			if strings.EqualFold(strings.TrimSpace(name), preference) {
				return true
			}
		}
	}
	return false
}
