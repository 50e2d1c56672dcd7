package console

import (
	"fmt"
	"path"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"

	"notebox/agent/internal/markdown"
	"notebox/terminal"
)

const (
	// maxColumns is how wide text is set at most: longer lines are hard to read.
	maxColumns = 100
	// minColumns is how wide text is set at least: what is deeper in lists and quotes is
	// not set in further.
	minColumns = 10
)

// written has the character references that models write, and what is escaped. Other
// references stay as they are: they could make any control character.
var written = func() *strings.Replacer {
	pairs := []string{"&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&nbsp;", " ", "&#39;", "'"}
	for _, c := range "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" {
		pairs = append(pairs, `\`+string(c), string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// colour is text in one of the 256 colours: of a dark ground, and of a light one.
func colour(t terminal.Theme, dark, light string) lipgloss.Style {
	if t.Light {
		dark = light
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(dark))
}

// render sets Markdown for a terminal of so many columns.
func render(t terminal.Theme, text string, l terminal.Links, columns int) string {
	p := page{t, []byte(terminal.Defuse(text)), &markdown.Links{}}
	for address := range l {
		p.links.Add(address)
	}
	set := p.blocks(markdown.Parse(p.source), "\n\n", max(min(columns, maxColumns), minColumns))
	return l.Gate(set)
}

// page renders a text. Its methods return lines without the last one's end.
type page struct {
	terminal.Theme
	source []byte
	links  *markdown.Links
}

func (p page) blocks(parent ast.Node, between string, width int) string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if text := p.block(n, width); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, between)
}

func (p page) block(n ast.Node, width int) string {
	switch n := n.(type) {
	case *ast.Heading:
		return lipgloss.Wrap(p.heading(n), width, "")
	case *ast.FencedCodeBlock:
		return p.code(n, string(n.Language(p.source)))
	case *ast.CodeBlock:
		return p.code(n, "")
	case *ast.HTMLBlock:
		return lipgloss.Wrap(markdown.Lines(n, p.source), width, "")
	case *ast.ThematicBreak:
		return colour(p.Theme, "240", "249").Render("--------")
	case *ast.Blockquote:
		return p.setIn(n, "│ ", "│ ", "\n\n", width)
	case *ast.List:
		return p.list(n, width)
	case *extension.Table:
		return p.table(n, width)
	}
	return lipgloss.Wrap(p.inline(n, lipgloss.NewStyle()), width, "")
}

func (p page) heading(n *ast.Heading) string {
	style := colour(p.Theme, "39", "27").Bold(true)
	switch n.Level {
	case 1:
		style = colour(p.Theme, "228", "228").Background(lipgloss.Color("63")).Bold(true)
		return p.inline(n, style) + style.Render(" ")
	case 6:
		style = colour(p.Theme, "35", "35")
	}
	return p.inline(n, style)
}

// setIn are the blocks of a node behind something: first before the first line, other
// before the others.
func (p page) setIn(n ast.Node, first, other, between string, width int) string {
	inner := width - lipgloss.Width(other)
	if inner < minColumns {
		return p.blocks(n, between, width)
	}
	return first + strings.ReplaceAll(p.blocks(n, between, inner), "\n", "\n"+other)
}

func (p page) list(n *ast.List, width int) string {
	between := "\n"
	if !n.IsTight {
		between = "\n\n"
	}
	var items []string
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", n.Start+len(items))
		}
		items = append(items, p.setIn(item, mark, strings.Repeat(" ", lipgloss.Width(mark)), between, width))
	}
	return strings.Join(items, "\n")
}

// code is a block of code. It is not wrapped, so that it can be copied.
func (p page) code(n ast.Node, language string) string {
	code := strings.TrimRight(p.Highlight(markdown.Lines(n, p.source), language), "\n")
	return "  " + strings.ReplaceAll(code, "\n", "\n  ")
}

func (p page) table(n *extension.Table, width int) string {
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, p.inline(cell, lipgloss.NewStyle()))
		}
		rows = append(rows, cells)
	}
	aligned := map[extension.Alignment]lipgloss.Position{extension.AlignRight: lipgloss.Right, extension.AlignCenter: lipgloss.Center}
	t := table.New().Headers(rows[0]...).Rows(rows[1:]...).Border(lipgloss.NormalBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		StyleFunc(func(_, column int) lipgloss.Style {
			return lipgloss.NewStyle().Padding(0, 1).Align(aligned[n.Alignments[column]])
		})
	if out := t.Render(); lipgloss.Width(out) <= width {
		return out
	}
	return t.Width(width).Render()
}

// inline is what a block says, on a line that is yet to be wrapped.
func (p page) inline(parent ast.Node, style lipgloss.Style) string {
	var out strings.Builder
	p.write(&out, parent, style)
	return out.String()
}

// write is inline, into one text: what is emphasised may be a thousand levels deep.
func (p page) write(out *strings.Builder, parent ast.Node, style lipgloss.Style) {
	said := "" // of texts side by side
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			said += string(n.Value(p.source))
			if next, _ := n.NextSibling().(*ast.Text); next != nil && !n.HardLineBreak() && !n.SoftLineBreak() {
				continue // goldmark cuts texts where something might have begun
			}
			out.WriteString(p.text(said, style))
			said = ""
			switch {
			case n.HardLineBreak():
				out.WriteByte('\n')
			case n.SoftLineBreak():
				out.WriteString(styled(style, " "))
			}
		case *ast.CodeSpan:
			code := style.Foreground(lipgloss.Color("203")).Background(lipgloss.Color("236"))
			if p.Light {
				code = code.Background(lipgloss.Color("254"))
			}
			out.WriteString(styled(code, "\u00a0"+markdown.Plain(n, p.source)+"\u00a0"))
		case *ast.Emphasis:
			if n.Level == 1 {
				p.write(out, n, style.Italic(true))
			} else {
				p.write(out, n, style.Bold(true))
			}
		case *extension.Strikethrough:
			p.write(out, n, style.Strikethrough(true).StrikethroughSpaces(true))
		case *ast.Link:
			out.WriteString(p.link(n, string(n.Destination)))
		case *ast.AutoLink:
			out.WriteString(p.link(n, string(n.URL(p.source))))
		case *ast.Image:
			out.WriteString(styled(colour(p.Theme, "243", "243"), "Image: "+written.Replace(markdown.Plain(n, p.source))+" →"))
		case *ast.RawHTML:
			out.WriteString(styled(style, string(n.Segments.Value(p.source))))
		}
	}
}

// text is text, in which addresses that notebox issued become links.
func (p page) text(text string, style lipgloss.Style) string {
	var out strings.Builder
	for at := 0; at < len(text); at++ {
		if n := p.links.Prefix(text[at:]); n > 0 {
			out.WriteString(styled(style, written.Replace(text[:at])) + p.link(nil, text[at:at+n]))
			text, at = text[at+n:], -1
		}
	}
	return out.String() + styled(style, written.Replace(text))
}

// link is the text of a link, which leads there if notebox issued it. Without a text it
// has the name of its file. n may be nil.
func (p page) link(n ast.Node, target string) string {
	style := colour(p.Theme, "35", "29").Bold(true)
	address := p.links.Find(target)
	if address != "" {
		style = style.Hyperlink(address)
	}
	if n != nil && n.HasChildren() {
		return p.inline(n, style)
	}
	if address != "" {
		file, _, _ := strings.Cut(address, "?")
		target = path.Base(file)
	}
	return styled(style, target)
}

// styled is a text without a break of lines.
func styled(style lipgloss.Style, text string) string {
	return style.Inline(true).Render(text)
}
