package web

import (
	"bytes"
	"encoding/json"
	"notebox/executor"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEvent reads an event as https://html.spec.whatwg.org/multipage/server-sent-events.html
// has it: whatever a text holds, it is one event of two lines.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"a\n\ndata: x", "\r", "\u2028\x00\ufeff", "</script>", "\xff", "\"\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := event("output", executor.StreamOutput{Text: text, Name: text})
		require.NoError(t, err)
		rest, ok := strings.CutPrefix(string(raw), "event: output\ndata: ")
		require.True(t, ok)
		data, ok := strings.CutSuffix(rest, "\n\n")
		require.True(t, ok)
		require.NotContains(t, data, "\n")
		require.NotContains(t, data, "\r")
		var out executor.StreamOutput
		require.NoError(t, json.Unmarshal([]byte(data), &out))
		require.Equal(t, string(bytes.ToValidUTF8([]byte(text), []byte("\ufffd"))) == text, out.Text == text)
	})
}
