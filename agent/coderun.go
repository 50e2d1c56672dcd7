package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"notebox/agent/tool"
)

// runCode is the code agent's tool.
func (x *question) runCode(ctx context.Context, c ToolCall) (outcome, error) {
	raw, err := json.Marshal(map[string]string{"name": c.Name, "arguments": c.Arguments})
	if err != nil {
		return outcome{}, fmt.Errorf("a call: %w", err)
	}
	languages := x.conversation.agent.about.Languages
	call, err := tool.Parse(raw, tool.ChatCompletions, languages...)
	if err == nil && len(call.Dependencies) > 0 && x.conversation.agent.sessions != nil {
		err = tool.ErrSessionPackages
	}
	if err == nil && call.About {
		step := Step{Role: CodeAgent, Tool: tool.Name, Input: c.Arguments}
		x.sink(Event{Kind: EventCall, Role: CodeAgent, Step: &step})
		step.Status, step.Output = "ok", x.conversation.agent.about.Tell(call.Language)
		return outcome{step: step}, nil
	}
	step := Step{Role: CodeAgent, Tool: tool.Name, Input: call.Code, Dependencies: call.Dependencies}
	if err != nil {
		step.Input = c.Arguments
	}
	x.sink(Event{Kind: EventCall, Role: CodeAgent, Step: &step})
	if err != nil {
		step.Status, step.Output = statusRefused, err.Error()
		return outcome{step: step}, nil
	}
	fields := map[string]any{"code": call.Code}
	language := "python"
	switch {
	case call.Language != "":
		language, fields["language"] = call.Language, call.Language
	case len(languages) > 0:
		language = languages[0].Name
	}
	if len(call.Dependencies) > 0 {
		fields["dependencies"] = call.Dependencies
	}
	mended, err := json.Marshal(fields)
	if err != nil {
		return outcome{}, fmt.Errorf("a call: %w", err)
	}
	result, note, err := x.execute(ctx, Run{
		Language: language, Code: call.Code, Timeout: min(call.Timeout, x.conversation.agent.about.MaxTimeout),
		Dependencies: call.Dependencies,
		Tell:         func(text string) { x.sink(Event{Kind: EventLive, Role: CodeAgent, Text: text}) },
	})
	var refused *tool.CallError
	switch {
	case errors.As(err, &refused):
		step.Status, step.Output = statusRefused, err.Error()
		return outcome{step: step, arguments: string(mended)}, nil
	case err != nil:
		return outcome{}, fmt.Errorf("run code: %w", err)
	}
	x.keep(result)
	step.Status = result.Status
	step.Output = note + tool.Text(*result, tool.Options{Budget: x.limits.Output})
	return outcome{step: step, arguments: string(mended)}, nil
}

// keep notes what a run left: for the answer, and as links that may stand in it.
func (x *question) keep(r *tool.Result) {
	x.conversation.links.Issue(r)
	x.answer.Images = append(x.answer.Images, r.Images...)
	for _, f := range r.Files {
		x.answer.Files = slices.DeleteFunc(x.answer.Files, func(old tool.File) bool { return old.Path == f.Path })
		x.answer.Files = append(x.answer.Files, f)
	}
}

// sessionLost is said to the model when a session has ended between two calls.
const sessionLost = "[The session had ended; this call ran in a new one. Variables and files of the calls before are gone.]\n"

// execute runs code in a sandbox of its own, or in the conversation's session.
func (x *question) execute(ctx context.Context, r Run) (result *tool.Result, note string, err error) {
	c := x.conversation
	if c.agent.sessions == nil {
		r.Files = c.files
		result, err = c.agent.executor.Execute(ctx, r)
		return result, "", err
	}
	for try := 0; ; try++ {
		if c.session == "" {
			if c.session, err = c.agent.sessions.OpenSession(ctx, r.Language, c.files); err != nil {
				return nil, "", err
			}
			c.entered(c.files)
		}
		r.Session, r.Files = c.session, c.outside()
		result, err = c.agent.executor.Execute(ctx, r)
		if err == nil {
			c.entered(r.Files)
		}
		if !errors.Is(err, ErrNoSession) || try > 0 {
			return result, note, err
		}
		c.session, note = "", sessionLost
	}
}

// entered notes that the session has these.
func (c *Conversation) entered(files []File) {
	for _, f := range files {
		delete(c.pending, f.Name)
	}
}

// outside are the files that the session does not have yet.
func (c *Conversation) outside() (out []File) {
	for _, f := range c.files {
		if c.pending[f.Name] {
			out = append(out, f)
		}
	}
	return out
}
