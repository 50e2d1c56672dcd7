package tool

import (
	"fmt"
	"slices"
	"strings"
)

// has reports whether calls may be in a language.
func (a About) has(name string) bool {
	return len(a.Languages) == 0 && name == python || slices.Contains(a.names(), name)
}

// names are those of the languages, by which a call says its own.
func (a About) names() (names []string) {
	for _, l := range a.Languages {
		names = append(names, l.Name)
	}
	return names
}

// runs names what the tool runs: "Python", "R", "Python 3, R or Bash".
func (a About) runs() string {
	var titles []string
	for _, l := range a.Languages {
		titles = append(titles, l.Title)
	}
	switch n := len(titles); {
	case n == 0 || n == 1 && a.Languages[0].Name == python:
		return "Python"
	case n == 1:
		return titles[0]
	default:
		return strings.Join(titles[:n-1], ", ") + " or " + titles[n-1]
	}
}

// program is what code is, for its description.
func (a About) program() string {
	if len(a.Languages) > 1 {
		return "program"
	}
	return a.runs() + " program"
}

// aboutLanguages says what is installed, for each language.
func (a About) aboutLanguages(line func(format string, args ...any)) {
	one := func(title string, l Language, notes []string) {
		if title != "" {
			title = " for " + title
		}
		switch {
		case len(l.Packages) > 0:
			line("Installed%s besides the standard library: %s. %s", title, named(l.Packages), a.more("", l))
		case a.installs():
			line("%s", a.more(title, l))
		}
		for _, note := range notes[:min(len(notes), maxNotes)] {
			line("%s", note)
		}
	}
	switch {
	case len(a.Languages) == 0:
		one("", Language{Packages: a.Packages}, a.Notes)
	case len(a.Languages) == 1:
		one("", a.Languages[0], a.Languages[0].Notes)
	default:
		for _, l := range a.Languages {
			one(l.Title, l, titled(l))
		}
	}
}

// installs reports whether calls may name packages: a session's are chosen when it is
// opened, which is not the model's.
func (a About) installs() bool {
	return !a.Session && slices.ContainsFunc(a.Languages, func(l Language) bool { return l.Dependencies != "" })
}

// more says how a program gets what is not installed.
func (a About) more(title string, l Language) string {
	switch {
	case a.installs() && l.Dependencies != "" && l.Allowed != nil:
		return fmt.Sprintf("More can be installed%s, of these packages alone: %s. Name them in dependencies, as %s does.", title, named(l.Allowed), l.Dependencies)
	case a.installs() && l.Dependencies != "":
		return fmt.Sprintf("More can be installed%s: name it in dependencies, as %s does.", title, l.Dependencies)
	case a.Network:
		return "Nothing more can be installed" + title + " but from hosts that are allowed."
	}
	return "Nothing more can be installed" + title + "."
}

// examples are entries in a notation, where one name is as good as another.
var examples = map[string]string{"pip": `"polars==1.*"`, "npm": `"lodash@^4"`}

// DependenciesSchema is that of the argument with packages to be installed, in JSON Schema;
// nil where a call may name none.
func (a About) DependenciesSchema() map[string]any {
	if !a.installs() {
		return nil
	}
	about := "Packages that the program needs beside those that are installed, by their names, with versions if need be"
	var such []string
	for _, l := range a.Languages {
		if example := examples[l.Dependencies]; example != "" && l.Allowed == nil && !slices.Contains(such, example) {
			such = append(such, example)
		}
	}
	if len(such) > 0 {
		about += ", such as " + strings.Join(such, " or ")
	}
	return map[string]any{
		"type": "array", "items": map[string]any{"type": "string"}, "description": about + ". They are installed before it runs.",
	}
}

// titled are the notes of a language among others, which its name comes before.
func titled(l Language) (notes []string) {
	for _, note := range l.Notes {
		notes = append(notes, l.Title+": "+note)
	}
	return notes
}
