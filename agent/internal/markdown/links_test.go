package markdown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/internal/markdown"
)

func TestLinks(t *testing.T) {
	const ours = "http://ours.example/a (1).csv?s=x"
	var l markdown.Links
	require.Empty(t, l.Find(ours))
	l.Add(ours)
	for _, c := range []struct{ desc, written, address, rest string }{
		{"as it is", ours, ours, ""},
		{"as a target", markdown.Target(ours), ours, ""},
		{"at the end of a sentence", ours + ").", ours, ")."},
		{"another that begins so", ours + "&more=1", "", ours + "&more=1"},
		{"one at another host", ours + "@evil.example", "", ours + "@evil.example"},
		{"nothing", "", "", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			address, rest := l.FindIn(c.written)
			require.Equal(t, c.address, address)
			require.Equal(t, c.rest, rest)
		})
	}
	l.Add(ours + "&more=1")
	for text, n := range map[string]int{
		ours + ", and": len(ours), ours + "&more=1": len(ours + "&more=1"), "so " + ours: 0, "http://other.example/": 0, "": 0,
	} {
		require.Equal(t, n, l.Prefix(text), text)
	}
	l.Remove(ours)
	require.Empty(t, l.Find(markdown.Target(ours)))
}
