package adversarial

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// answerTo is a reply as a service sends it.
func answerTo(status int, contentType, body string) *Answer {
	a := &Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body), Took: 3 * time.Second}
	a.parse()
	return a
}

// TestExpect: each thing that can be expected is missed if it is not there.
func TestExpect(t *testing.T) {
	reply := answerTo(200, "application/json; charset=utf-8", `{"id": "run_1", "status": "error", "text": "out\nValueError: boom", "outputs": [{}, {}],
		"error": {"name": "ValueError", "message": "boom", "traceback": "t"}, "hint": "h", "truncated": true, "images": [],
		"files": [{"path": "/mnt/data/a", "bytes": 3}], "skipped": [{"path": "/mnt/data/b", "reason": "symbolic link"}],
		"usage": {"wall_ms": 2500}}`)
	problem := answerTo(422, "application/problem+json", `{"status": 422, "detail": "timeout: is too long"}`)
	for _, c := range []struct {
		expect string
		answer *Answer
		says   string // of the failure; empty for none
		late   bool
	}{
		{expect: "{run: error, text: \"out\\nValueError: boom\", error: ValueError, message: boom, truncated: true}", answer: reply},
		{expect: "{run: [ok, error], text: {contains: [out, boom], lacks: x, matches: 'V.*r'}}", answer: reply},
		{expect: "{run: error, files: [{path: /mnt/data/a, bytes: 3}], skipped: [{path: /mnt/data/b, reason: symb.*}]}", answer: reply},
		{expect: "{status: 422, detail: {contains: timeout}}", answer: problem},
		{expect: "{run: error, within: 3, wall: {min: 2, max: 3}, bytes: 10000, outputs: {min: 2, max: 2}}", answer: reply},
		{expect: "{run: error, headers: {Content-Type: {contains: json}, X-Not-There: ''}}", answer: reply},

		{expect: "{run: ok}", answer: reply, says: "the run is error"},
		{expect: "{run: error, text: out}", answer: reply, says: "the text is"},
		{expect: "{run: error, text: {contains: in}}", answer: reply, says: "lacks"},
		{expect: "{run: error, text: {lacks: out}}", answer: reply, says: "has"},
		{expect: "{run: error, text: {matches: '^V'}}", answer: reply, says: "does not match"},
		{expect: "{run: error, error: ''}", answer: reply, says: "the error is"},
		{expect: "{run: error, message: x}", answer: reply, says: "message"},
		{expect: "{run: error, traceback: x}", answer: reply, says: "traceback"},
		{expect: "{run: error, hint: x}", answer: reply, says: "hint"},
		{expect: "{run: error, truncated: false}", answer: reply, says: "truncated"},
		{expect: "{run: error, files: []}", answer: reply, says: "files"},
		{expect: "{run: error, files: [{path: /mnt/data/a, bytes: 4}]}", answer: reply, says: "files"},
		{expect: "{run: error, images: [{path: x}]}", answer: reply, says: "images"},
		{expect: "{run: error, skipped: [{path: /mnt/data/b, reason: link}]}", answer: reply, says: "skipped"},
		{expect: "{run: error, bytes: 10}", answer: reply, says: "bytes"},
		{expect: "{run: error, outputs: {min: 3}}", answer: reply, says: "outputs"},
		{expect: "{run: error, outputs: {max: 1}}", answer: reply, says: "outputs"},
		{expect: "{run: error, headers: {Content-Type: x}}", answer: reply, says: "the header"},
		{expect: "{run: error, body: x}", answer: reply, says: "the body"},
		{expect: "{run: error, within: 2}", answer: reply, says: "took", late: true},
		{expect: "{run: error, wall: {min: 1, max: 2}}", answer: reply, says: "took", late: true},
		{expect: "{run: error, wall: {min: 3}}", answer: reply, says: "less than"},
		{expect: "{run: error}", answer: problem, says: "HTTP 422"},
		{expect: "{status: 400}", answer: problem, says: "HTTP 422"},
		{expect: "{status: 422, detail: x}", answer: problem, says: "the detail"},
		{expect: "{status: 422}", answer: answerTo(422, "text/plain", "no"), says: "no problem+json"},
		{expect: "{run: ok}", answer: answerTo(200, "text/plain", "no"), says: "no reply of a run"},
	} {
		t.Run(c.expect, func(t *testing.T) {
			var e Expect
			require.NoError(t, yaml.Load([]byte(c.expect), &e, yaml.WithKnownFields()))
			failures := e.Failures(c.answer, 1)
			if c.says == "" {
				require.Empty(t, failures)
				return
			}
			require.Len(t, failures, 1)
			require.Contains(t, failures[0].Text, c.says)
			require.Equal(t, c.late, failures[0].Late)
		})
	}
}

// TestLoadStretchesTime: the same reply is in time on a machine that has three times
// as much to do as it has cores.
func TestLoadStretchesTime(t *testing.T) {
	e := Expect{Within: 2, Wall: &Span{Min: 1, Max: 2}}
	a := &Answer{Status: 200, Took: 5 * time.Second, Reply: &Reply{}}
	a.Reply.Usage.WallMS = 3900
	require.Len(t, e.Failures(a, 1), 2)
	require.Empty(t, e.Failures(a, 3))
}
