package tool

import (
	"fmt"
	"strings"
	"time"
)

// Name is what the definition calls the tool.
const Name = "execute_python"

// About is what a model is told of the service.
type About struct {
	Packages   []string      // names of the installed libraries of Python
	Notes      []string      // what else a user should know of it, a sentence each
	Languages  []Language    // that a call may be in, the first where it names none; nil: Python
	Timeout    time.Duration // of a call that does not ask for more
	MaxTimeout time.Duration // that a call may ask for; 0: it may not ask
	Network    bool          // programs reach hosts that the operator has allowed
	Session    bool          // calls go into one session: variables and files stay
}

// The description's lists are cut, so that it stays a small part of a prompt.
const (
	maxNamed = 60 // packages
	maxNotes = 10
)

// Description is written for a model: what it may rely on, and what it may not.
func (a About) Description() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Runs %s code in a Jupyter kernel inside an isolated sandbox, and returns what it printed, the value of its last expression, tracebacks, images and files.", a.runs())
	a.aboutLanguages(line)
	line("Files that were handed over are in /mnt/data. What the code writes to /mnt/data is returned with a URL; /tmp is for what is not to be returned. Nothing else can be written to.")
	line("Plots that are shown%s are returned as images; they need no file.", map[bool]string{true: " (plt.show())"}[a.has(python)])
	switch {
	case a.Network:
		line("The network is closed, unless this call was given it, and then hosts that the operator allows are reached.")
	case a.installs():
		line("There is no network: the code itself can download and install nothing.")
	default:
		line("There is no network: nothing can be downloaded or installed.")
	}
	switch {
	case a.MaxTimeout > a.Timeout:
		line("A call is stopped after %v seconds; timeout asks for more, up to %v.", a.Timeout.Seconds(), a.MaxTimeout.Seconds())
	case a.Timeout > 0:
		line("A call is stopped after %v seconds.", a.Timeout.Seconds())
	}
	if a.Session {
		line("Variables, imports and files stay for the next call of this conversation.")
	} else {
		line("Nothing is kept between calls: each begins with a fresh interpreter, without the variables and files of the one before, so send the whole program each time.")
	}
	line("Nobody can answer %s. Use print() for what you want to read.", map[bool]string{true: "input()", false: "a question for input"}[a.has(python)])
	return strings.TrimSuffix(b.String(), "\n")
}

func named(packages []string) string {
	if len(packages) > maxNamed {
		return fmt.Sprintf("%s and %d others", strings.Join(packages[:maxNamed], ", "), len(packages)-maxNamed)
	}
	return strings.Join(packages, ", ")
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
