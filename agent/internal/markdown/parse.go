package markdown

import (
	"bytes"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// endAttribute is where a node's source ends; goldmark itself knows only where it
// begins.
const endAttribute = "notebox-end"

// ending is an inline parser whose nodes know where they end.
type ending struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (e ending) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	node := e.InlineParser.Parse(parent, block, pc)
	if node != nil {
		_, at := block.Position()
		node.SetAttributeString(endAttribute, at.Start)
	}
	return node
}

// CloseBlock passes the end of a block on to a link parser, which has brackets open.
func (e ending) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := e.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// maxCells is how many cells a table may have. goldmark fills each row up to the length of
// the first one: 64 KB of Markdown would have more than a hundred million.
const maxCells = 1 << 16

// tables makes tables of paragraphs, but for those that are too large.
type tables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t tables) Transform(n *ast.Paragraph, reader text.Reader, pc parser.Context) {
	columns, lines := 0, n.Lines()
	for i := range lines.Len() {
		columns = max(columns, bytes.Count(reader.Value(lines.At(i)), []byte("|"))+1)
	}
	if columns*lines.Len() <= maxCells {
		t.ParagraphTransformer.Transform(n, reader, pc)
	}
}

// Parse reads Markdown as GitHub does.
func Parse(source []byte) ast.Node {
	m := goldmark.New(
		goldmark.WithExtensions(extension.Strikethrough),
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(
				util.Prioritized(ending{parser.NewCodeSpanParser()}, 100),
				util.Prioritized(ending{parser.NewLinkParser()}, 200),
				util.Prioritized(ending{parser.NewAutoLinkParser()}, 300),
				util.Prioritized(ending{parser.NewRawHTMLParser()}, 400),
				util.Prioritized(parser.NewEmphasisParser(), 500),
			),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
			parser.WithParagraphTransformers(util.Prioritized(tables{extension.NewTableParagraphTransformer()}, 200)),
			parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
		)),
	)
	return m.Parser().Parse(text.NewReader(source))
}

// EndOf is where the source of an inline node ends; -1 if that is not known.
func EndOf(n ast.Node) int {
	end, ok := n.AttributeString(endAttribute)
	if !ok {
		return -1
	}
	return end.(int)
}

// Lines is the source of a block.
func Lines(n ast.Node, source []byte) string {
	return string(n.Lines().Value(source))
}

// Plain is the text of a node, in one line.
func Plain(n ast.Node, source []byte) string {
	var b bytes.Buffer
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(bytes.ReplaceAll(t.Value(source), []byte("\n"), []byte(" "))) // as in code
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return string(bytes.TrimSpace(b.Bytes()))
}
