package agent

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"notebox/agent/internal/markdown"
)

// span is a part of a text.
type span struct {
	start, stop int
	put         string // in its place
}

// spans do not overlap, in order.
type spans []span

// whole is the end of the span that begins at a place; 0 if none does.
func (s spans) whole(at int) int {
	if i, found := s.find(at); found {
		return s[i].stop
	}
	return 0
}

func (s spans) find(at int) (int, bool) {
	return slices.BinarySearchFunc(s, at, func(a span, at int) int { return a.start - at })
}

func (s spans) covers(at int) bool {
	i, found := s.find(at)
	return found || i > 0 && at < s[i-1].stop
}

func (s *spans) add(a span) {
	if a.start >= 0 && a.stop > a.start {
		*s = append(*s, a)
	}
}

// sorted leaves out what is within another.
func (s spans) sorted() spans {
	slices.SortFunc(s, func(a, b span) int { return cmp.Or(a.start-b.start, b.stop-a.stop) })
	out := s[:0]
	for _, a := range s {
		if len(out) == 0 || a.start >= out[len(out)-1].stop {
			out = append(out, a)
		}
	}
	return out
}

// codeOf is what is code in a text.
func codeOf(answer string) spans {
	var out spans
	_ = ast.Walk(markdown.Parse([]byte(answer)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
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
		s.add(span{start: n.Pos(), stop: markdown.EndOf(n)})
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		lines := n.Lines()
		for i := range lines.Len() {
			s.add(span{start: lines.At(i).Start, stop: lines.At(i).Stop})
		}
	}
}

// bare are addresses that stand in a text: whatever has a scheme, and what begins as
// web and mail addresses do.
var bare = regexp.MustCompile("(?i)(?:[a-z][a-z0-9+.-]*:(?://|\\\\\\\\)|www\\.|(?:mailto|xmpp|javascript|data|tel|sms|magnet):)[^\\s`<>]+")

// defuse is one pass of Clean. It reports whether there was nothing to do.
func (l *Links) defuse(answer string) (clean string, rests bool) {
	found := 0
	source := []byte(answer) // once: there may be a node for each byte
	var edits, keep spans
	_ = ast.Walk(markdown.Parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			keep.code(n)
			found += l.foreign(n, source, &edits, &keep)
		}
		return ast.WalkContinue, nil
	})
	keep = append(keep, edits...).sorted()
	for _, at := range bare.FindAllStringIndex(answer, -1) {
		address := answer[at[0]:at[1]]
		if issued, _ := l.urls.FindIn(address); issued != "" || keep.covers(at[0]) {
			continue
		}
		address = markdown.TrimAfter(address)
		edits.add(span{at[0], at[0] + len(address), markdown.Code(address)})
		found++
	}
	var out strings.Builder
	at := 0
	for _, e := range edits.sorted() {
		out.WriteString(answer[at:e.start] + e.put)
		at = e.stop
	}
	return out.String() + answer[at:], found == 0
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
		if l.urls.Find(address) != "" {
			keep.add(span{start: n.Pos(), stop: markdown.EndOf(n)})
			return 0
		}
		edits.add(span{n.Pos(), markdown.EndOf(n), markdown.Code(address)})
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
	if l.urls.Find(destination) != "" {
		return 0
	}
	label := markdown.Escape(markdown.Plain(n, source))
	address := markdown.Code(destination)
	if address != "" && label != "" {
		address = " (" + address + ")"
	}
	edits.add(span{n.Pos(), markdown.EndOf(n), label + address})
	return 1
}

// html makes every bracket of a tag a text.
func (s *spans) html(at text.Segment, source []byte) {
	for i := at.Start; i < at.Stop; i++ {
		if source[i] == '<' {
			s.add(span{i, i + 1, "&lt;"})
		}
	}
}
