package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"notebox/agent/tool"
)

// role is a model at work: what it knows, and what it can do.
type role struct {
	name         string
	mind         Mind
	instructions string
	tools        []Tool
	// call runs one call. Only what ends the question is an error.
	call func(ctx context.Context, c ToolCall) (outcome, error)
}

// outcome is what became of a call.
type outcome struct {
	step Step
	// arguments are the call's, in order, for the model to be reminded of; "": as they
	// came, if they are the JSON of an object.
	arguments string
	done      bool // there is nothing more for this role to do
}

// lastWord is added to the last result before a turn without tools.
const lastWord = "\n[No more calls are possible for this question. Say in words what you have, or what was tried and why it did not work.]"

// maxUnreadable is how much of arguments that nobody can read a model is reminded of,
// in bytes.
const maxUnreadable = 2_000

// converse has a role answer, calls and all. It returns its last text, and the
// messages with those that were added.
func (x *question) converse(ctx context.Context, r role, messages []Message) (said string, all []Message, err error) {
	for {
		x.steps++
		last := x.steps >= x.limits.Steps || x.failures > x.limits.Corrections
		prompt := Prompt{Instructions: r.instructions, Messages: messages, Tools: r.tools, NoTools: last}
		turn, err := x.turn(ctx, r, prompt)
		if err != nil {
			return "", messages, fmt.Errorf("%s agent: %w", r.name, err)
		}
		if last {
			turn.Calls = nil
			x.answer.Stopped = StoppedSteps
			if x.failures > x.limits.Corrections {
				x.answer.Stopped = StoppedCorrections
			}
		}
		number(turn.Calls, x.steps)
		messages = append(messages, Message{Role: RoleModel, Text: turn.Text, Calls: turn.Calls, Opaque: turn.Opaque})
		if len(turn.Calls) == 0 {
			x.sink(Event{Kind: EventTurn, Role: r.name})
			return strings.TrimSpace(turn.Text), messages, nil
		}
		results, done, err := x.calls(ctx, r, turn.Calls)
		if err != nil {
			return "", messages, err
		}
		messages = append(messages, Message{Role: RoleTools, Results: results})
		x.sink(Event{Kind: EventTurn, Role: r.name})
		switch spent := x.answer.Usage.In + x.answer.Usage.Out; {
		case done:
			return strings.TrimSpace(turn.Text), messages, nil
		case spent >= x.limits.Tokens:
			x.answer.Stopped = StoppedTokens
			return "", messages, nil
		}
	}
}

// turn asks the provider, tells of its text, and counts.
func (x *question) turn(ctx context.Context, r role, p Prompt) (*Turn, error) {
	turn, err := r.mind.Provider.Turn(ctx, p, func(d Delta) {
		if d.Again {
			x.sink(Event{Kind: EventAgain, Role: r.name})
		}
		if d.Text != "" {
			x.sink(Event{Kind: EventText, Role: r.name, Text: d.Text})
		}
	})
	if err != nil {
		return nil, err
	}
	u := turn.Usage
	if u.In == 0 {
		u.In = int64(tool.Tokens(p.Instructions) + tokens(p.Messages))
	}
	if u.Out == 0 {
		u.Out = int64(tokens([]Message{{Text: turn.Text, Calls: turn.Calls}}))
	}
	x.answer.Usage.In += u.In
	x.answer.Usage.Out += u.Out
	return turn, nil
}

// calls runs a turn's calls in order. It makes their arguments such that every
// provider takes them back.
func (x *question) calls(ctx context.Context, r role, calls []ToolCall) (results []ToolResult, done bool, err error) {
	for i := range calls {
		c := &calls[i]
		if done || x.failures > x.limits.Corrections {
			c.Arguments = object(c.Arguments)
			results = append(results, ToolResult{CallID: c.ID, Text: "[Not run.]", Failed: true})
			continue
		}
		out, err := r.call(ctx, *c)
		if err != nil {
			return nil, false, err
		}
		if c.Arguments = out.arguments; c.Arguments == "" {
			c.Arguments = object(calls[i].Arguments)
		}
		if out.step.Failed() {
			x.failures++
		}
		x.answer.Steps = append(x.answer.Steps, out.step)
		x.sink(Event{Kind: EventOutput, Role: r.name, Text: out.step.Output, Step: &out.step})
		results = append(results, ToolResult{CallID: c.ID, Text: out.step.Output, Failed: out.step.Failed()})
		done = out.done
	}
	if x.failures > x.limits.Corrections || x.steps+1 >= x.limits.Steps {
		results[len(results)-1].Text += lastWord
	}
	return results, done, nil
}

// number gives ids to calls that have none, or one that another has too.
func number(calls []ToolCall, step int) {
	seen := map[string]bool{}
	for i := range calls {
		if id := calls[i].ID; id == "" || seen[id] {
			calls[i].ID = fmt.Sprintf("call_%d_%d", step, i)
		}
		seen[calls[i].ID] = true
	}
}

// object is arguments, or an object that holds what cannot be sent back as it is.
func object(arguments string) string {
	var v map[string]any
	if json.Unmarshal([]byte(arguments), &v) == nil && v != nil {
		return arguments
	}
	cut := strings.ToValidUTF8(arguments[:min(len(arguments), maxUnreadable)], "\uFFFD")
	raw, err := json.Marshal(map[string]string{"unreadable": cut})
	if err != nil { // of a string: cannot be
		return "{}"
	}
	return string(raw)
}
