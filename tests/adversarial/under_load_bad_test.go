package adversarial

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// badLimit is the highest time limit of a bad run under load: what has 120 s alone,
// so that it meets another guard first, would have a place for as long here if
// that guard is wider.
const badLimit = 10 * time.Second

// leaveAfter is when the clients of F10 leave, seconds: in mid-run or in the queue.
const leaveAfter = 1

// notUnderLoad are the cases that are left out, and why. So are those attempts that
// have no requests, but Go code that sends them.
var notUnderLoad = map[string]string{
	"C12": "needs an image that does not start, and is a 5xx by right",
	"F11": "fills the queue on purpose, and is a 503 by right",
}

// bad is a case, as the parts that can be sent by themselves.
type bad struct {
	id    string
	parts [][]Request
}

// badOnes are the cases that one service can take beside others. Their settings are
// left out: a limit that is wider than the case needs makes it no kinder.
func badOnes(t *testing.T) []bad {
	all, err := Load(os.DirFS("cases"))
	require.NoError(t, err)
	left := map[string]string{}
	var out []bad
	for _, c := range all {
		if why, ok := notUnderLoad[c.ID]; ok {
			left[c.ID] = why
			continue
		}
		one := bad{id: c.ID}
		for _, v := range c.attempts() {
			one.parts = append(one.parts, parts(c.ID, v.Requests)...)
		}
		if len(one.parts) == 0 {
			left[c.ID] = "is sent by Go code"
			continue
		}
		out = append(out, one)
	}
	for id := range notUnderLoad {
		require.Contains(t, left, id, "there is no such case")
	}
	t.Logf("%d cases under load; left out: %v", len(out), left)
	return out
}

// parts are the requests one by one, or together if one needs the reply to
// another.
func parts(id string, requests []Request) (out [][]Request) {
	requests = slices.Clone(requests)
	for i := range requests {
		r := &requests[i]
		if r.Code != "" || r.Cells != nil {
			r.Timeout = min(r.timeout(), badLimit).Seconds()
		}
		if id == "F10" {
			r.LeaveAfter = leaveAfter
		}
	}
	if slices.ContainsFunc(requests, func(r Request) bool { return strings.HasPrefix(r.Path, "{") }) {
		return [][]Request{requests}
	}
	for i := range requests {
		out = append(out, requests[i:i+1])
	}
	return out
}

// pick takes a case and then a part of it, so that a case of 40 small requests is
// no more likely than one of a single large one.
func pick(r *rand.Rand, all []bad) (id string, requests []Request) {
	one := all[r.IntN(len(all))]
	i := r.IntN(len(one.parts))
	return fmt.Sprintf("%s.%d", one.id, i), one.parts[i]
}
