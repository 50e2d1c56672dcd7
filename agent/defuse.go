package agent

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

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

// parse reads Markdown as GitHub does, with ends.
func parse(markdown string) ast.Node {
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
	return m.Parser().Parse(text.NewReader([]byte(markdown)))
}

// span is a part of a text.
type span struct {
	start, stop int
	put         string // in its place
}

// spans do not overlap, in order.
type spans []span

// whole is the end of the span that begins at a place; 0 if none does.
func (s spans) whole(_ string, at int) int {
	i, found := slices.BinarySearchFunc(s, at, func(a span, at int) int { return a.start - at })
	if !found {
		return 0
	}
	return s[i].stop
}

func (s spans) covers(at int) bool {
	i, found := slices.BinarySearchFunc(s, at, func(a span, at int) int { return a.start - at })
	return found || i > 0 && at < s[i-1].stop
}

func (s *spans) add(a span) {
	if a.start >= 0 && a.stop > a.start {
		*s = append(*s, a)
	}
}

// sorted leaves out what is within another.
func (s spans) sorted() spans {
	slices.SortFunc(s, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.stop - a.stop
	})
	out := s[:0]
	for _, a := range s {
		if len(out) == 0 || a.start >= out[len(out)-1].stop {
			out = append(out, a)
		}
	}
	return out
}

// codeOf is what is code in a text.
func codeOf(markdown string) spans {
	var out spans
	_ = ast.Walk(parse(markdown), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			out.code(n)
		}
		return ast.WalkContinue, nil
	})
	return out.sorted()
}

func (s *spans) code(n ast.Node) {
	switch n := n.(type) {
	case *ast.CodeSpan:
		s.add(span{start: n.Pos(), stop: endOf(n)})
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		lines := n.Lines()
		for i := range lines.Len() {
			s.add(span{start: lines.At(i).Start, stop: lines.At(i).Stop})
		}
	}
}

func endOf(n ast.Node) int {
	end, ok := n.AttributeString(endAttribute)
	if !ok {
		return -1
	}
	return end.(int)
}

// bare are addresses that stand in a text: whatever has a scheme, and what begins as
// web and mail addresses do.
var bare = regexp.MustCompile("(?i)(?:[a-z][a-z0-9+.-]*:(?://|\\\\\\\\)|www\\.|(?:mailto|xmpp|javascript|data|tel|sms|magnet):)[^\\s`<>]+")

// punctuation is what may follow an address without being a part of it.
const punctuation = ".,;:!?'\")]}*_~|"

// maxFollowing is how much of it may: more than a sentence has, and few enough to be
// looked at one by one.
const maxFollowing = 16

// defuse is one pass of Clean. It reports whether there was nothing to do.
func (l *Links) defuse(markdown string) (clean string, rests bool) {
	found := 0
	source := []byte(markdown) // once: there may be a node for each byte
	var edits, keep spans
	_ = ast.Walk(parse(markdown), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			keep.code(n)
			found += l.foreign(n, source, &edits, &keep)
		}
		return ast.WalkContinue, nil
	})
	keep = append(keep, edits...).sorted()
	for _, at := range bare.FindAllStringIndex(markdown, -1) {
		address := markdown[at[0]:at[1]]
		if keep.covers(at[0]) || l.issued(address) {
			continue
		}
		address = strings.TrimRight(address, punctuation)
		edits.add(span{at[0], at[0] + len(address), inCode(address)})
		found++
	}
	var out strings.Builder
	at := 0
	for _, e := range edits.sorted() {
		out.WriteString(markdown[at:e.start] + e.put)
		at = e.stop
	}
	return out.String() + markdown[at:], found == 0
}

// issued accepts an address that is one of ours, with what may follow it in a sentence
// or as the end of a link.
func (l *Links) issued(address string) bool {
	rest := address
	for range maxFollowing {
		if l.urls[rest] {
			return true
		}
		if rest == "" || !strings.ContainsRune(punctuation, rune(rest[len(rest)-1])) {
			return false
		}
		rest = rest[:len(rest)-1]
	}
	return false
}

// foreign makes text of a node that shows, or leads to, what was not issued, and
// counts it.
func (l *Links) foreign(n ast.Node, source []byte, edits, keep *spans) int {
	switch n := n.(type) {
	case *ast.Link:
		return l.link(n, string(n.Destination), source, edits)
	case *ast.Image:
		return l.link(n, string(n.Destination), source, edits)
	case *ast.AutoLink:
		address := string(n.URL(source))
		if l.urls[address] {
			keep.add(span{start: n.Pos(), stop: endOf(n)})
			return 0
		}
		edits.add(span{n.Pos(), endOf(n), inCode(address)})
		return 1
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			edits.html(n.Segments.At(i), source)
		}
		return 1
	case *ast.HTMLBlock:
		for i := range n.Lines().Len() {
			edits.html(n.Lines().At(i), source)
		}
		if n.HasClosure() {
			edits.html(n.ClosureLine, source)
		}
		return 1
	}
	return 0
}

func (l *Links) link(n ast.Node, destination string, source []byte, edits *spans) int {
	if l.urls[destination] {
		return 0
	}
	label := escaped(plain(n, source))
	address := inCode(destination)
	if address != "" && label != "" {
		address = " (" + address + ")"
	}
	edits.add(span{n.Pos(), endOf(n), label + address})
	return 1
}

// plain is the text of a node.
func plain(n ast.Node, source []byte) string {
	var b bytes.Buffer
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Value(source))
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// html makes every bracket of a tag a text.
func (s *spans) html(at text.Segment, source []byte) {
	for i := at.Start; i < at.Stop; i++ {
		if source[i] == '<' {
			s.add(span{i, i + 1, "&lt;"})
		}
	}
}
