package discord

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	line := strings.Repeat("word ", 15) + "end.\n" // 80
	for _, c := range []struct {
		desc, text string
		limit      int
		want       []string
	}{
		{"what fits", "short", 100, []string{"short"}},
		{"exactly the limit", strings.Repeat("x", 100), 100, []string{strings.Repeat("x", 100)}},
		{"nothing but blanks", " \n\n ", 100, nil},
		{"between paragraphs", strings.Repeat("a", 70) + "\n\n" + strings.Repeat("b", 70), 100, []string{strings.Repeat("a", 70) + "\n", "\n" + strings.Repeat("b", 70)}},
		{"between lines", line + line, 100, []string{strings.TrimSuffix(line, "\n"), "\n" + line}},
		{"between words", strings.Repeat("word ", 40), 100, []string{strings.Repeat("word ", 20), strings.Repeat("word ", 20)}},
		{"within a word", strings.Repeat("x", 150), 100, []string{strings.Repeat("x", 100), strings.Repeat("x", 50)}},
		{"outside the basic plane each counts once", strings.Repeat("😀", 150), 100, []string{strings.Repeat("😀", 100), strings.Repeat("😀", 50)}},
		{"a family is not torn", strings.Repeat("x", 98) + "👩‍👩‍👧‍👦" + "y", 100, []string{strings.Repeat("x", 98), "👩‍👩‍👧‍👦y"}},
		{"an accent stays with its letter", strings.Repeat("x", 99) + "e\u0301", 100, []string{strings.Repeat("x", 99), "e\u0301"}},
		{"one character that is too long for a message", "e" + strings.Repeat("\u0301", 150), 100, []string{"e" + strings.Repeat("\u0301", 99), strings.Repeat("\u0301", 51)}},
		{
			"code is closed and opened again",
			"```python\n" + strings.Repeat("print(1)\n", 12) + "```\nDone.", 100,
			[]string{"```python\n" + strings.Repeat("print(1)\n", 9) + "```", "```python\n" + strings.Repeat("print(1)\n", 3) + "```\nDone."},
		},
		{
			"a long line of code", "```\n" + strings.Repeat("z", 150) + "\n```", 100,
			[]string{"```\n" + strings.Repeat("z", 92) + "\n```", "```\n" + strings.Repeat("z", 58) + "\n```"},
		},
		{
			"a block that fits the next message is not torn",
			strings.Repeat("x", 60) + "\n```go\n" + strings.Repeat("f()\n", 12) + "```", 100,
			[]string{strings.Repeat("x", 60), "\n```go\n" + strings.Repeat("f()\n", 12) + "```"},
		},
		{
			"no empty block before or after", "```\n" + strings.Repeat("a", 92) + "\n```\nafter", 100,
			[]string{"```\n" + strings.Repeat("a", 92) + "\n```", "\nafter"},
		},
		{"a fence that is never closed", "```\n" + strings.Repeat("a\n", 60), 100, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got := Split(c.text, c.limit)
			check(t, c.text, c.limit)
			if c.want != nil || strings.TrimSpace(c.text) == "" {
				require.Equal(t, c.want, got)
			}
		})
	}
}

// check holds for every text.
func check(t *testing.T, text string, limit int) {
	t.Helper()
	var joined strings.Builder
	clusters := uniseg.GraphemeClusterCount(text)
	for _, p := range split(text, limit) {
		require.NotEmpty(t, p.text)
		require.LessOrEqual(t, utf8.RuneCountInString(p.String()), limit, "%q", p.String())
		require.True(t, utf8.ValidString(p.text), "a character is torn")
		joined.WriteString(p.text)
		fence := ""
		for _, line := range strings.Split(p.String(), "\n") {
			fence = fenceAfter(fence, line)
		}
		require.Empty(t, fence, "a block of code is open in %q", p.String())
	}
	require.Equal(t, text, joined.String())
	require.Equal(t, clusters, uniseg.GraphemeClusterCount(joined.String()))
}

func FuzzSplit(f *testing.F) {
	f.Add("plain text", uint16(0))
	f.Add("```python\nprint(1)\n```\n"+strings.Repeat("a b\n", 80), uint16(50))
	f.Add(strings.Repeat("```\ncode\n", 40), uint16(1))
	f.Add(strings.Repeat("👩‍👩‍👧‍👦", 60)+"\r\n\r\n```", uint16(7))
	f.Add("```"+strings.Repeat("x", 300)+"\n``` \n```a\n", uint16(0))
	f.Fuzz(func(t *testing.T, text string, more uint16) {
		check(t, strings.ToValidUTF8(text, "?"), 100+int(more)%2000)
	})
}
