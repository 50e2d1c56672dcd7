package agent

import (
	"context"
	"encoding/json"
)

// Provider is a model, reached in one way. The implementations are in package
// provider; any other that keeps these promises will do.
type Provider interface {
	// Turn asks for the model's next answer to a conversation. tell is called with each
	// piece of its text as it comes, from the goroutine of Turn alone. An error means
	// that there is no answer, whatever was told before. Turn ends soon after ctx.
	Turn(ctx context.Context, p Prompt, tell func(Delta)) (*Turn, error)
}

// Prompt is what a model is asked.
type Prompt struct {
	Instructions string
	Messages     []Message // the last is of the user, or has results
	Tools        []Tool
	NoTools      bool // the model must not call any: it says what it has to say
}

// Message is one of a conversation: a question, an answer with calls, or the results
// of all calls of the answer before it.
type Message struct {
	Role    Role
	Text    string       // of the user or the model
	Calls   []ToolCall   // of the model
	Results []ToolResult // of the calls before, in their order
	// Opaque is what a provider wants back as it was, such as a model's signed
	// reasoning. Nobody else reads it.
	Opaque json.RawMessage
}

// Role is who says a Message.
type Role string

// The roles.
const (
	RoleUser  Role = "user"
	RoleModel Role = "model"
	RoleTools Role = "tools"
)

// Tool is one that a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  map[string]any // JSON Schema of an object
}

// ToolCall is a call as the model wrote it. In a Prompt, Arguments is the JSON of an
// object; in a Turn it may be anything.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// ToolResult answers a call.
type ToolResult struct {
	CallID string
	Text   string
	Failed bool
}

// Turn is a model's answer.
type Turn struct {
	Text   string
	Calls  []ToolCall
	Opaque json.RawMessage
	Usage  Usage // zero where the provider did not say
	// CutOff is that the model was stopped before its end, by the provider's limit.
	CutOff bool
}

// Usage is in tokens, as a provider counts them.
type Usage struct{ In, Out int64 }

// Delta is a piece of a model's text.
type Delta struct {
	Text string
	// Again is that the answer begins anew, as the connection broke: what was told of
	// it does not count any more.
	Again bool
}
