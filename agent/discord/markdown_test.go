package discord

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const (
	ours   = "https://notebox.example/v1/files/a.csv?sig=(x)"
	target = "https://notebox.example/v1/files/a.csv?sig=%28x%29"
	z      = blank
)

func TestMarkdown(t *testing.T) {
	for _, c := range []struct {
		desc, text string
		attached   bool
		want       string
	}{
		{"plain", "**bold** and `code`", false, "**bold** and `code`"},
		{"a link that was issued", "See [a.csv](" + target + ").", false, "See [a.csv](<" + ours + ">)."},
		{"one with a title", `[a.csv](` + target + ` "title")`, false, "[a.csv](<" + ours + ">)"},
		{"a bare one", "See " + ours + ".", false, "See <" + ours + ">."},
		{"an image without a text", "![](" + target + ")", false, "[file](<" + ours + ">)"},
		{"one that is attached", "See [a.csv](" + target + ") here", true, "See a.csv here"},
		{"an image that is attached", "![the chart](" + target + ")\nText", true, "the chart\nText"},
		{"a foreign link", "[x](https://evil.example/)", false, "[x](https:" + z + "//evil.example/)"},
		{"a foreign address", "https://evil.example/?q=1", false, "https:" + z + "//evil.example/?q=1"},
		{"one in angle brackets", "<https://evil.example/>", false, "<https:" + z + "//evil.example/>"},
		{"one in inline code", "`https://evil.example`", false, "`https:" + z + "//evil.example`"},
		{"one that begins as ours", ours + "@evil.example", false, strings.Replace(ours, "://", ":"+z+"//", 1) + "@evil.example"},
		{"one that is put together", "[https:](" + target + ")//evil.example", true, "https:" + z + "//evil.example"},
		{"one around a label", "htt[ps](" + target + ")://evil.example", true, "htt" + z + "ps" + z + ":" + z + "//evil.example"},
		{"an invitation", "discord.gg/abc", false, "discord.gg" + z + "/abc"},
		{"a fence of tildes", "~~~py\nhttps://x.example\n~~~", false, "```py\nhttps://x.example\n```"},
		{"a long fence, with one within", "````md\n```\ncode\n```\n````", false, "```md\n``" + z + "`\ncode\n``" + z + "`\n```"},
		{"a fence in a list", "- so:\n  ```python\n  x = 1\n    y\n  ```\n- next", false, "- so:\n```python\nx = 1\n  y\n```\n- next"},
		{"a fence that is not closed", "```\ncode", false, "```\ncode\n```"},
		{"a language that is none", "```python title=\"x\"\n1\n```", false, "```python\n1\n```"},
		{"a fence within a line", "so ```x``` and", false, "so `x` and"},
		{"indented code, which Discord does not know", "    https://evil.example", false, "https:" + z + "//evil.example"},
		{"a table", "Rows:\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\nEnd", false, "Rows:\n\n```\n| a | b |\n|---|--:|\n| 1 | 2 |\n```\n\nEnd"},
		{"what the agent escaped", "&lt;b>", false, "<b>"},
		{"mentions stay, as they mention nobody", "@everyone <@1>", false, "@everyone <@1>"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var l links
			l.issue(ours)
			require.Equal(t, c.want, render(c.text, &l, map[string]bool{ours: c.attached}))
		})
	}
}

// live is an address that Discord makes a link of.
var live = regexp.MustCompile(`https?://[^\s<>)]+`)

func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{
		"[a](" + target + ") https://evil.example ```x```", "~~~\nhttps://x.example\n~~~\n| a |\n|-|-|\n", "[https:](" + target + ")//e",
		"> ```\n> https://e.example\n", "````\n```\nhttps://e.example\n", "![http](" + target + ")s://e", "<" + ours + ">//e",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, attached bool) {
		var l links
		l.issue(ours)
		out := render(strings.ToValidUTF8(text, "?"), &l, map[string]bool{ours: attached})
		for _, p := range Split(out, maxContent) {
			require.LessOrEqual(t, utf8.RuneCountInString(p), maxContent)
			code := false
			for _, line := range strings.Split(p, "\n") {
				if strings.HasPrefix(line, "```") {
					code = !code
					continue
				}
				for _, u := range live.FindAllString(line, -1) {
					require.True(t, code || strings.HasPrefix(ours, strings.TrimRight(u, ".")) || strings.HasPrefix(u, ours), "%q in %q", u, line)
				}
			}
			require.False(t, code)
		}
	})
}

func TestNamesOfFiles(t *testing.T) {
	for _, c := range []struct{ desc, name, want string }{
		{"usual", "sales 2026.csv", "sales 2026.csv"},
		{"a path", "/etc/passwd", "passwd"},
		{"a path of Windows", `C:\x\y.txt`, "y.txt"},
		{"hidden", ".env", "env"},
		{"nothing", "", "file"},
		{"dots", "..", "file"},
		{"line breaks and quotes", "a\"\r\nX: y.png", "a___X_ y.png"},
		{"long", strings.Repeat("é", 100) + ".tar", strings.Repeat("é", 48) + ".tar"},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, fileName(c.name)) })
	}
}

func TestHostsOfAttachments(t *testing.T) {
	b := &Bot{}
	var err error
	b.cdn, err = hosts(nil)
	require.NoError(t, err)
	for _, c := range []struct {
		address string
		want    bool
	}{
		{"https://cdn.discordapp.com/attachments/1/2/a.csv?ex=1", true},
		{"https://media.discordapp.net/attachments/1/2/a.csv", true},
		{"http://cdn.discordapp.com/attachments/1/2/a.csv", false},
		{"https://cdn.discordapp.com:8443/a", false},
		{"https://cdn.discordapp.com@evil.example/a", false},
		{"https://user@cdn.discordapp.com/a", false},
		{"https://cdn.discordapp.com.evil.example/a", false},
		{"https://169.254.169.254/latest", false},
		{"file:///etc/passwd", false},
		{"//cdn.discordapp.com/a", false},
	} {
		u, err := url.Parse(c.address)
		require.NoError(t, err)
		require.Equal(t, c.want, b.isDiscords(u), c.address)
	}
}

func TestHeard(t *testing.T) {
	h := newHeard(2)
	require.True(t, h.first("1"))
	require.False(t, h.first("1"))
	require.True(t, h.first("2"))
	require.True(t, h.first("3"))
	require.False(t, h.first("2"))
	require.True(t, h.first("1"), "the oldest is forgotten")
	require.Len(t, h.known, 2)
}

func TestGroups(t *testing.T) {
	b := &Bot{}
	b.config.UploadLimit = 100
	of := func(sizes ...int) (out []attached) {
		for _, n := range sizes {
			out = append(out, attached{content: make([]byte, n)})
		}
		return out
	}
	for _, c := range []struct {
		desc  string
		files []attached
		want  []int
	}{
		{"none", nil, nil},
		{"by size", of(60, 40, 1, 99, 100), []int{2, 2, 1}},
		{"by number", of(make([]int, 23)...), []int{10, 10, 3}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var got []int
			for _, g := range b.groups(c.files) {
				got = append(got, len(g))
			}
			require.Equal(t, c.want, got)
		})
	}
}
