package terminal

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// The styles of code.
const (
	darkStyle  = "github-dark"
	lightStyle = "github"
)

// Highlight colours code; a language that is not known stays as it is.
func (t Theme) Highlight(code, language string) string {
	code = Defuse(code)
	lexer := lexers.Get(language)
	if lexer == nil {
		return code
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return code
	}
	style := darkStyle
	if t.Light {
		style = lightStyle
	}
	var out strings.Builder
	if err := formatters.TTY256.Format(&out, styles.Get(style), tokens); err != nil {
		return code
	}
	return Links(nil).Gate(out.String())
}

// Theme is how text is coloured.
type Theme struct {
	Light bool // the terminal's ground is
}
