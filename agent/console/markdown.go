package console

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
)

// maxColumns is how wide text is set at most: longer lines are hard to read.
const maxColumns = 100

// place stands for an ampersand while Markdown is rendered. The renderer reads character
// references, some twice, and so could be made to write any control character. href
// stands for a link's address, which is shown with the file it is of, and not again.
// Defuse leaves no such characters in a text.
const (
	place = '\uE000'
	href  = "\uE001"
)

// escapedPlace is place where the renderer wrote it into an address.
const escapedPlace = "%EE%80%80"

// references are those that models write and that are no danger.
var references = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&nbsp;", " ", "&#39;", "'")

// Theme is how text is coloured.
type Theme struct {
	Light bool // the terminal's ground is
}

// render sets Markdown for a terminal of so many columns.
func (t Theme) render(markdown string, l links, columns int) string {
	markdown = strings.ReplaceAll(l.name(Defuse(markdown)), "&", string(place))
	r, err := glamour.NewTermRenderer(glamour.WithStyles(t.style()), glamour.WithInlineTableLinks(true), glamour.WithWordWrap(min(columns, maxColumns)))
	if err != nil {
		return restore(markdown)
	}
	out, err := r.Render(markdown)
	if err != nil {
		return restore(markdown)
	}
	out = padding.ReplaceAllString(l.gate(hrefs.ReplaceAllString(restore(out), plain)), plain)
	return edges.ReplaceAllString(out, "")
}

// style is the renderer's own, without what is around a text.
func (t Theme) style() ansi.StyleConfig {
	style := styles.DarkStyleConfig
	if t.Light {
		style = styles.LightStyleConfig
	}
	none := uint(0)
	style.Document.Margin = &none
	style.Document.BlockPrefix, style.Document.BlockSuffix = "", ""
	for _, h := range []*ansi.StyleBlock{&style.H1, &style.H2, &style.H3, &style.H4, &style.H5, &style.H6} {
		h.Prefix = ""
	}
	style.Link.Format = href
	return style
}

var (
	// hrefs are a link's address behind its text.
	hrefs = regexp.MustCompile(`(?:\x1b\[[0-9;:]*m|[ \n])*` + href)
	// padding is what the renderer fills lines up with.
	padding = regexp.MustCompile(`(?m)(?:\x1b\[[0-9;:]*m| )+$`)
	// edges are empty lines around a text.
	edges = regexp.MustCompile(`^(?:(?:\x1b\[[0-9;:]*m)*\n)+|(?:\n(?:\x1b\[[0-9;:]*m)*)+$`)
)

// name gives links that have no text the name of their file as one.
func (l links) name(markdown string) string {
	for _, address := range l.longestFirst() {
		bare := regexp.MustCompile(`(\]\(|\]:[ ]*<?|<|)` + regexp.QuoteMeta(address) + `(>?)`)
		markdown = bare.ReplaceAllStringFunc(markdown, func(found string) string {
			if strings.HasPrefix(found, "]") {
				return found
			}
			file, _, _ := strings.Cut(address, "?")
			return "[" + path.Base(file) + "](" + address + ")"
		})
	}
	return markdown
}

// longestFirst has addresses before those that they begin with.
func (l links) longestFirst() []string {
	var all []string
	for address := range l {
		all = append(all, address)
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return all
}

// restore puts what stood there in the place of what was put for it.
func restore(text string) string {
	text = strings.ReplaceAll(text, escapedPlace, "&")
	return references.Replace(strings.ReplaceAll(text, string(place), "&"))
}
