package console

import (
	"testing"

	"notebox/terminal"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ desc, in, want string }{
		{"headings", "# One\n\ntext\n\n## Two", "One \n\ntext\n\nTwo"},
		{"a paragraph is wrapped", "one *two* **three** `four` ~~five~~ six\nseven", "one two three \u00a0four\u00a0\nfive six seven"},
		{"a hard break", "a  \nb\\\nc", "a\nb\nc"},
		{"lists in lists", "3. one\n4. two\n   - three\n   - four", "3. one\n4. two\n   • three\n   • four"},
		{"a quote is wrapped behind its bar", "> one two three four five\n>\n> six", "│ one two three four\n│ five\n│ \n│ six"},
		{"code is not wrapped", "```python\nprint('it is longer than a line')\n```", "  print('it is longer than a line')"},
		{"a table", "| a | b |\n|---|--:|\n| one | 2 |", " a   │ b \n─────┼───\n one │ 2 "},
		{"character references", "&lt;b> &amp; &#27;", "<b> & &#27;"},
		{"what is escaped", `[my\_file\.csv](` + ours + `) \*a\* \&lt;`, `my_file.csv *a* &lt;`},
		{"an image", "![a_chart *x*](" + ours + ")", "Image: a_chart x →"},
		{"an address has the name of its file", "It is in " + ours + ".", "It is in f."},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, ansi.Strip(render(terminal.Theme{}, c.in, terminal.Links{ours: true}, 22)))
		})
	}
}
