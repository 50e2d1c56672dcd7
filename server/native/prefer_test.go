package native

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/executor/problem"
)

func TestWishes(t *testing.T) {
	for _, c := range []struct {
		desc   string
		header http.Header
		want   wishes
		err    string
	}{
		{"nothing", http.Header{}, wishes{}, ""},
		{"async", http.Header{"Prefer": {"respond-async"}}, wishes{async: true}, ""},
		{"among others", http.Header{"Prefer": {`return=minimal; foo="some, parameter"`, `handling=lenient,  RESPOND-async ;x=1`}}, wishes{async: true}, ""},
		{"in a quoted value", http.Header{"Prefer": {`foo="a, respond-async, b"`}}, wishes{}, ""},
		{"another", http.Header{"Prefer": {"respond-asynchronously"}}, wishes{}, ""},
		{"key", http.Header{"Idempotency-Key": {"k!~"}}, wishes{key: "k!~"}, ""},
		{"longest key", http.Header{"Idempotency-Key": {strings.Repeat("k", 255)}}, wishes{key: strings.Repeat("k", 255)}, ""},
		{"too long", http.Header{"Idempotency-Key": {strings.Repeat("k", 256)}}, wishes{}, "1 to 255"},
		{"empty", http.Header{"Idempotency-Key": {""}}, wishes{}, "1 to 255"},
		{"space", http.Header{"Idempotency-Key": {"a b"}}, wishes{}, "visible ASCII"},
		{"beyond ASCII", http.Header{"Idempotency-Key": {"ü"}}, wishes{}, "visible ASCII"},
		{"two", http.Header{"Idempotency-Key": {"a", "a"}}, wishes{}, "more than once"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := wishesOf(c.header)
			if c.err == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				return
			}
			var p *problem.Error
			require.ErrorAs(t, err, &p)
			require.EqualValues(t, 400, p.Status)
			require.Contains(t, p.Detail(), "Idempotency-Key: ")
			require.Contains(t, p.Detail(), c.err)
		})
	}
}
