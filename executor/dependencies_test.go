package executor

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	const line = "a line of the installer\n"
	for _, c := range []struct {
		desc   string
		parts  []string
		begins string // with a mark, where something is missing
	}{
		{"all of it", []string{line}, line},
		{"many lines", slices.Repeat([]string{line}, 10000), "[…]\n" + line},
		{"just what is kept", append([]string{strings.Repeat("x", maxInstallText+1)}, slices.Repeat([]string{line}, maxInstallText/len(line))...), "[…]\n" + line},
		{"one long line", []string{strings.Repeat("é", maxInstallText)}, "[…]\né"},
		{"one long line with its end", []string{strings.Repeat("é", maxInstallText) + "\n"}, "[…]\né"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var said tail
			for _, part := range c.parts {
				said.add(part)
			}
			text := said.String()
			require.LessOrEqual(t, len(text), maxInstallText+10)
			require.True(t, strings.HasPrefix(text, c.begins), "it begins with %q", text[:min(40, len(text))])
			require.LessOrEqual(t, len(said.text), 2*maxInstallText+100)
		})
	}
}
