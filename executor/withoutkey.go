package executor

import (
	"fmt"
	"net/url"
	"strings"

	"notebox/executor/problem"
)

// runKeyParts is how many components of a run's key are the service's own:
// runs/<date>/<run>/<kind>, see storage.RunKey. What follows is a name that the
// user's code chose.
const runKeyParts = 4

// WithoutKey is an error of the store about an object whose key holds a name from
// a run. Stores and file systems quote keys, in one spelling or another; what is
// at the bottom of the error says why all the same.
func WithoutKey(err error, key string) error {
	text := problem.Leaf(err).Error()
	parts := strings.SplitN(key, "/", runKeyParts+1)
	if len(parts) > runKeyParts {
		for part := range strings.SplitSeq(parts[runKeyParts], "/") {
			if strings.Contains(text, part) || strings.Contains(text, url.PathEscape(part)) {
				text = fmt.Sprintf("an error of type %T", problem.Leaf(err))
			}
		}
	}
	return &problem.Redacted{Text: text, Whole: err}
}
