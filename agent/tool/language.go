package tool

import (
	"slices"
	"strings"
)

// Language is one that calls may be in.
type Language struct {
	Name     string   // by which the service knows it: "python"
	Aliases  []string // other names for it
	Title    string   // for a model: "Python 3"
	Packages []string // names of the installed libraries
	Notes    []string // what else a user should know, a sentence each
	// Dependencies is the notation in which a call may name packages to be installed: pip,
	// npm or apt. "": it may name none.
	Dependencies string
	Allowed      []string // names of the only ones; nil: all
}

// python is the language of a tool that is told of none.
const python = "python"

// pythons are names that models have for it beside those that the service knows.
var pythons = []string{"py", "python3", "ipython", "ipython3"}

// answers reports whether name is one of l's.
func (l Language) answers(name string) bool {
	names := append([]string{l.Name}, l.Aliases...)
	if l.Name == python {
		names = append(names, pythons...)
	}
	return slices.ContainsFunc(names, func(own string) bool { return strings.EqualFold(own, name) })
}

// parser reads calls in some languages, of which there is at least one.
type parser struct{ languages []Language }

func parserOf(languages []Language) parser {
	if len(languages) == 0 {
		languages = []Language{{Name: python}}
	}
	return parser{languages}
}

// language finds the one that is called so; "" is known, and none.
func (p parser) language(name string) (known string, ok bool) {
	if name = strings.TrimSpace(name); name == "" {
		return "", true
	}
	for _, l := range p.languages {
		if l.answers(name) {
			return l.Name, true
		}
	}
	return "", false
}

// offered names the languages in a sentence.
func (p parser) offered() string {
	if len(p.languages) == 1 && p.languages[0].Name == python {
		return "Python"
	}
	var names []string
	for _, l := range p.languages {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// mended is code whose line breaks or quotes may have been escaped once too often: only of
// Python it can be told.
func (p parser) mended(code, language string) string {
	if language == "" {
		language = p.languages[0].Name
	}
	if language != python {
		return code
	}
	return unescape(code)
}
