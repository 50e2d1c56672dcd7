package agenttest

import (
	"fmt"
	"net/http"
	"strings"
)

// role is who said a part of a conversation.
type role string

const (
	roleSystem role = "system"
	roleUser   role = "user"
	roleModel  role = "model"
	roleTool   role = "tool"
)

// part is one message of a request, or one block or item where the protocol has
// those.
type part struct {
	role role
	text string
	call string // the id of a call, by the model or answered by a tool
}

// Request is what the server was asked, in whichever protocol.
type Request struct {
	Protocol string      // chat, responses or messages
	Path     string      // of its URL
	Header   http.Header // as it came
	Model    string
	Stream   bool
	Tools    []string // the names of the tools that are offered
	NoTools  bool     // calls are forbidden, or none is offered
	Body     []byte

	usage bool // of a stream is asked for
	parts []part
	crypt bool // encrypted reasoning is asked for
}

// Question is the last message of the user.
func (r *Request) Question() string {
	i := r.lastQuestion()
	if i < 0 {
		return ""
	}
	return r.parts[i].text
}

// ToolResults are the texts of the tool results since the last question, in order.
func (r *Request) ToolResults() []string {
	var out []string
	for _, p := range r.parts[max(r.lastQuestion(), 0):] {
		if p.role == roleTool {
			out = append(out, p.text)
		}
	}
	return out
}

// Text is all that the messages say, instructions included.
func (r *Request) Text() string {
	var b strings.Builder
	for _, p := range r.parts {
		b.WriteString(p.text + "\n")
	}
	return b.String()
}

func (r *Request) lastQuestion() int {
	for i := len(r.parts) - 1; i >= 0; i-- {
		if r.parts[i].role == roleUser {
			return i
		}
	}
	return -1
}

// turn is how often the model has answered since the last question: what it says
// without anything between is one answer.
func (r *Request) turn() int {
	n, within := 0, false
	for _, p := range r.parts[max(r.lastQuestion(), 0):] {
		if p.role == roleModel && !within {
			n++
		}
		within = p.role == roleModel
	}
	return n
}

// check finds what the services refuse in every protocol.
func (r *Request) check() error {
	if r.Model == "" {
		return fmt.Errorf("you must provide a model parameter")
	}
	if r.lastQuestion() < 0 {
		return fmt.Errorf("there is no message of the user")
	}
	open := map[string]bool{}
	for _, p := range r.parts {
		switch {
		case p.role == roleModel && p.call != "":
			open[p.call] = true
		case p.role == roleTool && !open[p.call]:
			return fmt.Errorf("no tool call found for the result with id %q", p.call)
		case p.role == roleTool:
			delete(open, p.call)
		case p.role == roleUser && len(open) > 0:
			return fmt.Errorf("a tool call is not followed by its result")
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d tool calls have no result", len(open))
	}
	return nil
}
