package console

import (
	"regexp"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/styles"
)

// maxColumns is how wide text is set at most: longer lines are hard to read.
const maxColumns = 100

// place stands for an ampersand while Markdown is rendered. The renderer reads character
// references, some twice, and so could be made to write any control character.
// Defuse leaves no such character in a text.
const place = '\uE000'

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
	markdown = strings.ReplaceAll(Defuse(markdown), "&", string(place))
	style := styles.DarkStyleConfig
	if t.Light {
		style = styles.LightStyleConfig
	}
	none, no := uint(0), ""
	style.Document.Margin = &none
	style.Document.BlockPrefix, style.Document.BlockSuffix = no, no
	r, err := glamour.NewTermRenderer(glamour.WithStyles(style), glamour.WithWordWrap(min(columns, maxColumns)))
	if err != nil {
		return restore(markdown)
	}
	out, err := r.Render(markdown)
	if err != nil {
		return restore(markdown)
	}
	return strings.Trim(padding.ReplaceAllString(l.gate(restore(out)), plain), "\n")
}

// padding is what the renderer fills lines up with.
var padding = regexp.MustCompile(`(?m)(?:\x1b\[[0-9;:]*m| )+$`)

func restore(text string) string {
	text = strings.ReplaceAll(text, escapedPlace, "&")
	return references.Replace(strings.ReplaceAll(text, string(place), "&"))
}
