package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// messages is Anthropic's Messages (https://docs.claude.com/en/api/messages).
type messages struct{}

func (messages) read(r *http.Request, body []byte) (*Request, error) {
	if r.Header.Get("X-Api-Key") == "" && bearer(r) != nil {
		return nil, errNoKey
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return nil, errors.New("anthropic-version: header is required")
	}
	var in struct {
		Model     string          `json:"model"`
		MaxTokens int             `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string                `json:"name"`
			InputSchema struct{ Type string } `json:"input_schema"`
		} `json:"tools"`
		ToolChoice struct{ Type string } `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	if in.MaxTokens <= 0 {
		return nil, errors.New("max_tokens: Field required")
	}
	req := &Request{Protocol: "messages", Model: in.Model, Stream: in.Stream, usage: true}
	for i, t := range in.Tools {
		if t.Name == "" || t.InputSchema.Type != "object" {
			return nil, fmt.Errorf("tools.%d: needs a name and an input_schema of type object", i)
		}
		req.Tools = append(req.Tools, t.Name)
	}
	req.NoTools = len(in.Tools) == 0 || in.ToolChoice.Type == "none"
	if in.System != nil {
		req.parts = append(req.parts, part{role: roleSystem, text: textOf(in.System)})
	}
	for i, m := range in.Messages {
		parts, err := blocks(m.Role, m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages.%d: %w", i, err)
		}
		for _, p := range parts {
			if p.call != "" && len(in.Tools) == 0 {
				return nil, errors.New("requests which include tool_use or tool_result blocks must define tools")
			}
		}
		req.parts = append(req.parts, parts...)
	}
	return req, nil
}

// blocks are the parts of one message. Text of the user beside tool results is said
// to the model with them, and is no new question.
func blocks(who string, content json.RawMessage) ([]part, error) {
	own := map[string]role{"user": roleUser, "assistant": roleModel}[who]
	if own == "" {
		return nil, fmt.Errorf("unexpected role %q", who)
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{role: own, text: text}}, nil
	}
	var list []struct {
		Type, Text, ID, Name, Signature string
		Input                           json.RawMessage `json:"input"`
		ToolUseID                       string          `json:"tool_use_id"`
		Content                         json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	var out []part
	question := part{role: own}
	for _, b := range list {
		switch {
		case b.Type == "text":
			question.text += b.Text
		case b.Type == "tool_use" && own == roleModel:
			out = append(out, part{role: roleModel, text: b.Name + " " + string(b.Input), call: b.ID})
		case b.Type == "tool_result" && own == roleUser:
			out = append(out, part{role: roleTool, text: textOf(b.Content), call: b.ToolUseID})
		case b.Type == "thinking" && b.Signature == "":
			return nil, errors.New("thinking: signature: Field required")
		case b.Type == "thinking" || b.Type == "redacted_thinking":
			out = append(out, part{role: own})
		case b.Type == "image" || b.Type == "document":
		default:
			return nil, fmt.Errorf("content: unexpected block %q of %s", b.Type, who)
		}
	}
	if len(out) > 0 && own == roleUser {
		out[len(out)-1].text += question.text
		return out, nil
	}
	return append([]part{question}, out...), nil
}

func (messages) whole(a *answer) any {
	var content []any
	for _, b := range contentOf(a) {
		content = append(content, b.whole)
	}
	m := messageOf(a, content)
	m["stop_reason"] = stopReason(a)
	m["usage"] = object{"input_tokens": a.in, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": a.out, "service_tier": "standard"}
	return m
}

// block is one of an answer's content: as a whole, and in a stream.
type block struct {
	whole, start object
	deltas       []object
}

func contentOf(a *answer) []block {
	var out []block
	if a.turn.Reasoning != "" {
		signature := a.id("signature-")
		b := block{
			whole: object{"type": "thinking", "thinking": a.turn.Reasoning, "signature": signature},
			start: object{"type": "thinking", "thinking": "", "signature": ""},
		}
		for _, piece := range pieces(a.turn.Reasoning) {
			b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": piece})
		}
		b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": signature})
		out = append(out, b)
	}
	if a.text != "" || len(a.calls) == 0 {
		b := block{whole: object{"type": "text", "text": a.text}, start: object{"type": "text", "text": ""}}
		for _, piece := range pieces(a.text) {
			b.deltas = append(b.deltas, object{"type": "text_delta", "text": piece})
		}
		out = append(out, b)
	}
	for _, c := range a.calls {
		b := block{
			whole: object{"type": "tool_use", "id": c.id, "name": c.name, "input": json.RawMessage(c.arguments)},
			start: object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}},
		}
		b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": ""})
		for _, piece := range pieces(c.arguments) {
			b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		out = append(out, b)
	}
	return out
}

func (messages) events(a *answer) []event {
	m := messageOf(a, []any{})
	m["usage"] = object{"input_tokens": a.in, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}
	out := []event{{"message_start", object{"message": m}}}
	for i, b := range contentOf(a) {
		out = append(out, event{"content_block_start", object{"index": i, "content_block": b.start}})
		if i == 0 {
			out = append(out, event{"ping", object{}})
		}
		for _, d := range b.deltas {
			out = append(out, event{"content_block_delta", object{"index": i, "delta": d}})
		}
		out = append(out, event{"content_block_stop", object{"index": i}})
	}
	out = append(out,
		event{"message_delta", object{"delta": object{"stop_reason": stopReason(a), "stop_sequence": nil}, "usage": object{"output_tokens": a.out}}},
		event{"message_stop", object{}},
	)
	for _, e := range out {
		e.data.(object)["type"] = e.name
	}
	return out
}

func stopReason(a *answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func messageOf(a *answer, content []any) object {
	return object{
		"id": a.id("msg_"), "type": "message", "role": "assistant", "model": a.req.Model,
		"content": content, "stop_reason": nil, "stop_sequence": nil,
	}
}

func (messages) failure(f Fault) (any, event) {
	kind := "api_error"
	switch f.Status {
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case 0, 529: // of a stream, or Anthropic's own status
		kind = "overloaded_error"
	}
	if f.Message == "" {
		f.Message = "Overloaded"
	}
	body := object{"type": "error", "error": object{"type": kind, "message": f.Message}}
	return body, event{"error", body}
}
