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

// Parse reads Markdown as GitHub does.
func Parse(source []byte) ast.Node {
	m := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
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
			b.Write(t.Value(source))
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return string(bytes.TrimSpace(b.Bytes()))
}
