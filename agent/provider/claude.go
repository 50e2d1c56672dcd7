package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"notebox/agent"
)

type claude struct {
	settings Settings
	service  anthropic.MessageService
}

func newClaude(s Settings) *claude {
	s.MaxTokens = cmp.Or(s.MaxTokens, DefaultMaxTokens)
	return &claude{s, anthropic.NewMessageService(
		option.WithBaseURL(s.BaseURL), option.WithAPIKey(s.Key), option.WithHTTPClient(s.Client), option.WithMaxRetries(0),
	)}
}

// Turn implements agent.Provider.
func (c *claude) Turn(ctx context.Context, p agent.Prompt, tell func(agent.Delta)) (*agent.Turn, error) {
	in := c.params(p)
	var blocks claudeBlocks
	if c.settings.Whole {
		out, err := c.service.New(ctx, in)
		if err != nil {
			return nil, ofAnthropic(ctx, err)
		}
		blocks.whole(out)
		turn := blocks.turn()
		if turn.Text != "" {
			tell(agent.Delta{Text: turn.Text})
		}
		return turn, nil
	}
	stream := c.service.NewStreaming(ctx, in)
	defer stream.Close()
	for stream.Next() {
		blocks.add(stream.Current(), tell)
	}
	if err := stream.Err(); err != nil {
		return nil, ofAnthropic(ctx, err)
	}
	if !blocks.ended {
		return nil, ofConnection(ctx, errBrokeOff)
	}
	return blocks.turn(), nil
}

func (c *claude) params(p agent.Prompt) anthropic.MessageNewParams {
	in := anthropic.MessageNewParams{Model: c.settings.Model, MaxTokens: c.settings.MaxTokens}
	in.OutputConfig.Effort = anthropic.OutputConfigEffort(c.settings.Effort)
	if p.Instructions != "" {
		in.System = []anthropic.TextBlockParam{{Text: p.Instructions}}
	}
	for _, m := range p.Messages {
		switch m.Role {
		case agent.RoleUser:
			in.Messages = append(in.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(m.Text)))
		case agent.RoleTools:
			var blocks []anthropic.ContentBlockParamUnion
			for _, r := range m.Results {
				blocks = append(blocks, anthropic.NewToolResultBlock(r.CallID, r.Text, r.Failed))
			}
			in.Messages = append(in.Messages, anthropic.NewUserMessage(blocks...))
		default:
			if blocks := claudeAnswer(m); len(blocks) > 0 { // an empty message is refused
				in.Messages = append(in.Messages, anthropic.NewAssistantMessage(blocks...))
			}
		}
	}
	for _, t := range p.Tools {
		in.Tools = append(in.Tools, claudeTool(t))
	}
	if p.NoTools && len(p.Tools) > 0 {
		none := anthropic.NewToolChoiceNoneParam()
		in.ToolChoice.OfNone = &none
	}
	return in
}

func claudeTool(t agent.Tool) anthropic.ToolUnionParam {
	schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{}, ExtraFields: map[string]any{}}
	for name, value := range t.Parameters {
		switch name {
		case "type":
		case "properties":
			schema.Properties = value
		default:
			schema.ExtraFields[name] = value
		}
	}
	out := anthropic.ToolUnionParamOfTool(schema, t.Name)
	out.OfTool.Description = anthropic.String(t.Description)
	return out
}

// thought is a block of reasoning, which is wanted back with its signature.
type thought struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// claudeAnswer is an answer of the model as blocks: what it thought comes first.
func claudeAnswer(m agent.Message) (out []anthropic.ContentBlockParamUnion) {
	var thoughts []thought
	_ = json.Unmarshal(m.Opaque, &thoughts) // our own, or another provider's, which is left out
	for _, t := range thoughts {
		switch {
		case t.Signature != "":
			out = append(out, anthropic.NewThinkingBlock(t.Signature, t.Thinking))
		case t.Redacted != "":
			out = append(out, anthropic.NewRedactedThinkingBlock(t.Redacted))
		}
	}
	if m.Text != "" {
		out = append(out, anthropic.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		out = append(out, anthropic.NewToolUseBlock(c.ID, json.RawMessage(c.Arguments), c.Name))
	}
	return out
}

// claudeBlock is one of an answer, as far as it has come.
type claudeBlock struct {
	kind, text, id, name string // text is also of thinking and of a call's input
	signature            string
}

// claudeBlocks puts the events of a stream together. Not by the client's own, which
// has an error for what a model may write where a call's input should be.
type claudeBlocks struct {
	list   []claudeBlock
	usage  agent.Usage
	reason anthropic.StopReason
	ended  bool
}

func (b *claudeBlocks) add(e anthropic.MessageStreamEventUnion, tell func(agent.Delta)) {
	switch e.Type {
	case "message_start":
		b.usage = claudeUsage(e.Message.Usage)
	case "content_block_start":
		c := e.ContentBlock
		b.list = append(b.list, claudeBlock{kind: c.Type, text: c.Text + c.Thinking + c.Data, id: c.ID, name: c.Name, signature: c.Signature})
	case "content_block_delta":
		if len(b.list) == 0 {
			return
		}
		block, d := &b.list[len(b.list)-1], e.Delta
		block.text += d.Text + d.PartialJSON + d.Thinking
		block.signature += d.Signature
		if d.Type == "text_delta" {
			tell(agent.Delta{Text: d.Text})
		}
	case "message_delta":
		b.usage.Out, b.reason = e.Usage.OutputTokens, e.Delta.StopReason
	case "message_stop":
		b.ended = true
	}
}

func (b *claudeBlocks) whole(m *anthropic.Message) {
	b.usage, b.reason = claudeUsage(m.Usage), m.StopReason
	for _, c := range m.Content {
		b.list = append(b.list, claudeBlock{kind: c.Type, text: c.Text + c.Thinking + c.Data + string(c.Input), id: c.ID, name: c.Name, signature: c.Signature})
	}
}

func claudeUsage(u anthropic.Usage) agent.Usage {
	return agent.Usage{In: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Out: u.OutputTokens}
}

func (b *claudeBlocks) turn() *agent.Turn {
	turn := &agent.Turn{Usage: b.usage, CutOff: b.reason == anthropic.StopReasonMaxTokens}
	var thoughts []thought
	for _, c := range b.list {
		switch c.kind {
		case "text":
			turn.Text += c.text
		case "tool_use":
			// Of a tool without arguments nothing comes.
			turn.Calls = append(turn.Calls, agent.ToolCall{ID: c.id, Name: c.name, Arguments: cmp.Or(c.text, "{}")})
		case "thinking":
			thoughts = append(thoughts, thought{Thinking: c.text, Signature: c.signature})
		case "redacted_thinking":
			thoughts = append(thoughts, thought{Redacted: c.text})
		}
	}
	if len(thoughts) > 0 {
		turn.Opaque, _ = json.Marshal(thoughts) // strings
	}
	return turn
}

// ofAnthropic is an error of Anthropic's client.
func ofAnthropic(ctx context.Context, err error) error {
	var refused *anthropic.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused) && refused.Response != nil && refused.StatusCode >= 400:
		return ofStatus(refused.StatusCode, refused.Response.Header, err)
	case errors.As(err, &refused):
		return ofStream(err)
	}
	return ofConnection(ctx, err)
}
