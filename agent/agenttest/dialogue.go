package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Script is everything that a Server says.
type Script struct {
	Dialogues []Dialogue `json:"dialogues"`
}

// Dialogue is what a model says to one question.
type Dialogue struct {
	// Model is the only one that says it; "": any.
	Model string `json:"model,omitempty"`
	// Question is what the last message of the user contains; "": anything. The first
	// dialogue that fits is taken.
	Question string `json:"question,omitempty"`
	Turns    []Turn `json:"turns"`
	// Repeat says the last turn again and again.
	Repeat bool `json:"repeat,omitempty"`
	// WithoutTools is what is said where the request forbids tool calls, in place of a
	// turn that has some.
	WithoutTools *Turn `json:"without_tools,omitempty"`
}

// Turn is one answer of the model.
type Turn struct {
	// Text may hold {{tool}}, which is the text of the last tool result, and
	// {{tool:REGEXP}}, which is the first group that matches in it.
	Text      string `json:"text,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	Reasoning string `json:"reasoning,omitempty"` // before all else, where the protocol has it

	// Faults come before the turn is said, one for each request.
	Faults []Fault `json:"faults,omitempty"`
	// Expect are texts that the messages of the request must contain, and Absent such
	// that they must not: else the answer is an error, and a failure is kept.
	Expect []string `json:"expect,omitempty"`
	Absent []string `json:"absent,omitempty"`
	// NoUsage leaves out the count of tokens, as some servers do.
	NoUsage bool `json:"no_usage,omitempty"`
}

// Call is a tool call.
type Call struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// Arguments are sent as they are, also if they are no JSON. In a file they may be
// a string, or any other JSON value, of which the text is taken.
type Arguments string

// UnmarshalJSON implements json.Unmarshaler.
func (a *Arguments) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*a = Arguments(s)
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	*a = Arguments(compact.String())
	return nil
}

// Code returns the call of a tool with the one argument "code".
func Code(name, code string) Call {
	raw, err := json.Marshal(map[string]string{"code": code})
	if err != nil { // of a string: cannot be
		panic(err)
	}
	return Call{Name: name, Arguments: Arguments(raw)}
}

// Fault is something that goes wrong before or within an answer.
type Fault struct {
	Status     int    `json:"status,omitempty"`      // 429, 500, 529: instead of an answer
	RetryAfter string `json:"retry_after,omitempty"` // the header, with Status
	Message    string `json:"message,omitempty"`     // of the error; "": one is made up
	Cut        bool   `json:"cut,omitempty"`         // the connection ends in the middle of the answer
	InStream   bool   `json:"in_stream,omitempty"`   // an error event ends the stream in its middle
	Hang       bool   `json:"hang,omitempty"`        // nothing comes until the client goes
}

// Load reads a script from a JSON file. Unknown fields are errors.
func Load(path string) (Script, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var s Script
	if err := d.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

var toolText = regexp.MustCompile(`\{\{tool(?::(.*?))?\}\}`)

// say fills in what the text takes from the last tool result.
func say(text, tool string) (string, error) {
	var failed error
	out := toolText.ReplaceAllStringFunc(text, func(place string) string {
		pattern := toolText.FindStringSubmatch(place)[1]
		if pattern == "" {
			return strings.TrimSpace(tool)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			failed = err
			return ""
		}
		m := re.FindStringSubmatch(tool)
		if m == nil {
			failed = fmt.Errorf("%s matches nothing in the last tool result %q", pattern, tool)
			return ""
		}
		return m[len(m)-1]
	})
	return out, failed
}
