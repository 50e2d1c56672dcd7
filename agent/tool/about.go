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

// first is the language of a call that names none.
func (a About) first() Language {
	if len(a.Languages) > 0 {
		return a.Languages[0]
	}
	return Language{Name: python, Title: "Python", Packages: a.Packages, Notes: a.Notes}
}

// title is a language's name in a sentence.
func (l Language) title() string {
	if l.Title == "" || len(l.Title) > maxRuns/2 {
		return l.Name
	}
	return l.Title
}

// runs names what the tool runs: "Python", "R", "Python 3, R or Bash".
func (a About) runs() string {
	if len(a.Languages) == 0 || len(a.Languages) == 1 && a.Languages[0].Name == python {
		return "Python"
	}
	titles, size := []string{}, 0
	for i, l := range a.Languages {
		if size += len(l.title()) + len(", "); i > 0 && size > maxRuns {
			return fmt.Sprintf("%s or %d other languages'", strings.Join(titles, ", "), len(a.Languages)-i)
		}
		titles = append(titles, l.title())
	}
	if n := len(titles); n > 1 {
		return strings.Join(titles[:n-1], ", ") + " or " + titles[n-1]
	}
	return titles[0]
}

// program is what code is, for its description.
func (a About) program() string {
	if len(a.Languages) > 1 {
		return "program"
	}
	return a.runs() + " program"
}

// Tell is all that a model may want to know of one language; "" is the first. If it is not
// known, the answer is of the first too.
func (a About) Tell(language string) string {
	about := a.first()
	for _, l := range a.Languages {
		if language != "" && l.answers(language) {
			about = l
		}
	}
	lines := []string{"Nothing was run. What there is to know of " + about.title() + " here:"}
	if len(about.Packages) > 0 {
		lines = append(lines, fmt.Sprintf("- Installed besides the standard library: %s.", strings.Join(about.Packages, ", ")))
	}
	lines = append(lines, "- "+a.more(about))
	for _, note := range about.Notes {
		lines = append(lines, "- "+note)
	}
	if a.MaxTimeout > a.Timeout {
		lines = append(lines, fmt.Sprintf("- A call is stopped after %v seconds; timeout asks for more, up to %v.", a.Timeout.Seconds(), a.MaxTimeout.Seconds()))
	} else if ends := a.ends(); ends != "" {
		lines = append(lines, "- "+ends)
	}
	if a.Network {
		lines = append(lines, "- The network is closed, unless this call was given it, and then hosts that the operator allows are reached.")
	}
	lines = append(lines, "- "+a.kept())
	var others []string
	for _, l := range a.Languages {
		if l.Name != about.Name {
			others = append(others, l.Name)
		}
	}
	if len(others) > 0 {
		lines = append(lines, "- Other languages, about which language asks: "+strings.Join(others, ", ")+".")
	}
	return Cut(strings.Join(lines, "\n"), DefaultBudget)
}

// installs reports whether calls may name packages: a session's are chosen when it is
// opened, which is not the model's.
func (a About) installs() bool {
	return !a.Session && slices.ContainsFunc(a.Languages, func(l Language) bool { return l.Dependencies != "" })
}

// more says how a program gets what is not installed.
func (a About) more(l Language) string {
	switch {
	case a.installs() && l.Dependencies != "" && l.Allowed != nil:
		return fmt.Sprintf("More can be installed, of these packages alone: %s. Name them in dependencies, as %s does.", strings.Join(l.Allowed, ", "), l.Dependencies)
	case a.installs() && l.Dependencies != "":
		return fmt.Sprintf("More can be installed: name it in dependencies, as %s does.", l.Dependencies)
	case a.Network:
		return "Nothing more can be installed but from hosts that are allowed."
	}
	return "Nothing more can be installed."
}

// examples are entries in a notation, where one name is as good as another.
var examples = map[string]string{"pip": `"polars==1.*"`, "npm": `"lodash@^4"`}

// DependenciesSchema is that of the argument with packages to be installed, in JSON Schema;
// nil if a call may name none.
func (a About) DependenciesSchema() map[string]any {
	if !a.installs() {
		return nil
	}
	about := "Packages to be installed before, beside those that are there: names, with versions if need be"
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
		"type": "array", "items": map[string]any{"type": "string"}, "description": about + ".",
	}
}
