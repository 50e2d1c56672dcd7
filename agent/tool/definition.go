package tool

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Name is what the definition calls the tool.
const Name = "execute_python"

// About is what a model is told of the service: the most important in the tool's description,
// all of it by Tell.
type About struct {
	Packages   []string      // names of the installed libraries of Python
	Notes      []string      // what else a user should know of it, a sentence each
	Languages  []Language    // that a call may be in, the first where it names none; nil: Python
	Timeout    time.Duration // of a call that does not ask for more
	MaxTimeout time.Duration // that a call may ask for; 0: it may not ask
	Network    bool          // programs reach hosts that the operator has allowed
	Session    bool          // calls go into one session: variables and files stay
	Ask        string        // how a model learns more, a sentence; "": by the argument about
}

// Bounds on what stands in each request to a model. Providers refuse tools, or cut them, whose
// descriptions are longer; what a call seldom needs is told by a call with about.
const (
	MaxDescription = 1000 // of the tool, in bytes
	MaxParameter   = 200  // of an argument's description, in bytes
	// maxRuns is what the names of the languages take of it, in bytes.
	maxRuns = 200
)

// askAbout is how a model comes by what the description leaves out.
const askAbout = "With about: true nothing is run, and the answer says what is installed and what else to know of a language."

// Description is written for a model: what it may rely on, and what it may not. It is at most
// MaxDescription long, with what is put after it; the names of libraries get what is left.
func (a About) Description(after ...string) string {
	lines := []string{
		fmt.Sprintf("Runs %s code in a Jupyter kernel inside an isolated sandbox, and returns what it printed, the value of its last expression, tracebacks, images and files.", a.runs()),
		"Files that were handed over are in /mnt/data; what the code writes there is returned with a URL. Elsewhere only /tmp can be written to.",
		"Plots that are shown" + map[bool]string{true: " (plt.show())"}[a.has(python)] + " are returned as images.",
		a.reach(),
		a.kept(),
		a.ends(),
		"Nobody can answer " + map[bool]string{true: "input()", false: "a question for input"}[a.has(python)] + ". Use print() for what you want to read.",
	}
	if a.Ask == "" {
		a.Ask = askAbout
	}
	lines = append(append(lines, after...), a.Ask)
	text := strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
	if first := a.first(); len(first.Packages) > 0 {
		begin := "\nInstalled: "
		if len(a.Languages) > 1 {
			begin = "\nInstalled for " + first.title() + ": "
		}
		if some := named(first.Packages, MaxDescription-len(text)-len(begin)-len(".")); some != "" {
			text += begin + some + "."
		}
	}
	return text
}

// reach says whether code has a network, and packages.
func (a About) reach() string {
	switch {
	case a.Network && a.installs():
		return "The network is closed, unless this call was given it. Packages can be installed: name them in dependencies."
	case a.Network:
		return "The network is closed, unless this call was given it; then hosts that the operator allows are reached."
	case a.installs():
		return "There is no network: the code itself can download nothing. Packages can be installed: name them in dependencies."
	}
	return "There is no network: nothing can be downloaded or installed."
}

// ends says when a call is stopped, unless the argument timeout does.
func (a About) ends() string {
	if a.Timeout <= 0 || a.MaxTimeout > a.Timeout {
		return ""
	}
	return fmt.Sprintf("A call is stopped after %v seconds.", a.Timeout.Seconds())
}

// kept says what a call leaves to the next.
func (a About) kept() string {
	if a.Session {
		return "Variables, imports and files stay for the next call of this conversation."
	}
	return "Nothing is kept between calls: each begins with a fresh interpreter and no files, so send the whole program each time."
}

// named lists names in at most room bytes, "" if that is too little to tell.
func named(names []string, room int) string {
	whole := strings.Join(names, ", ")
	if len(whole) <= room {
		return whole
	}
	for n := len(names) - 1; n > 0; n-- {
		if some := fmt.Sprintf("%s and %d others", strings.Join(names[:n], ", "), len(names)-n); len(some) <= room {
			return some
		}
	}
	return ""
}

// Definition is an entry of a request's list of tools, to be written as JSON. In
// Gemini's notation that is a Tool with one function declaration. Calls are not
// strict (OpenAI's word), as timeout may be left out.
func Definition(n Notation, a About) any {
	description := a.Description()
	switch n {
	case Responses:
		return map[string]any{"type": "function", "name": Name, "description": description, "parameters": schema(a, true), "strict": false}
	case Anthropic:
		return map[string]any{"name": Name, "description": description, "input_schema": schema(a, true)}
	case Gemini: // its Schema has no additionalProperties
		return map[string]any{"functionDeclarations": []any{
			map[string]any{"name": Name, "description": description, "parameters": schema(a, false)},
		}}
	default:
		return map[string]any{"type": "function", "function": map[string]any{
			"name": Name, "description": description, "parameters": schema(a, true), "strict": false,
		}}
	}
}

// schema is that of the arguments, in JSON Schema.
func schema(a About, closed bool) map[string]any {
	properties := map[string]any{
		"code": map[string]any{"type": "string", "description": "The " + a.program() + ", as plain text: no Markdown fence around it."},
	}
	if len(a.Languages) > 1 {
		properties["language"] = map[string]any{"type": "string", "enum": a.names(), "description": "Of the program. " + a.Languages[0].Name + " where it is left out."}
	}
	properties["about"] = map[string]any{"type": "boolean", "description": "true: run nothing (code may be empty), and say what is installed in the language, its limits and what else to know of it."}
	if packages := a.DependenciesSchema(); packages != nil {
		properties["dependencies"] = packages
	}
	if a.MaxTimeout > a.Timeout {
		properties["timeout"] = map[string]any{
			"type":        "number",
			"description": fmt.Sprintf("Seconds after which the call is stopped, at most %v. %v where it is left out.", a.MaxTimeout.Seconds(), a.Timeout.Seconds()),
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "required": []string{"code"}}
	if closed {
		s["additionalProperties"] = false
	}
	return s
}
