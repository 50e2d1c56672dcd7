package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is OpenAI's Chat Completions
// (https://platform.openai.com/docs/api-reference/chat).
type chat struct{}

func (chat) read(r *http.Request, body []byte) (*Request, error) {
	if err := bearer(r); err != nil {
		return nil, err
	}
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string                `json:"type"`
			Function struct{ Name string } `json:"function"`
		} `json:"tools"`
		ToolChoice    any `json:"tool_choice"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	req := &Request{Protocol: "chat", Model: in.Model, Stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	for _, t := range in.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return nil, fmt.Errorf("invalid tool: type %q, name %q", t.Type, t.Function.Name)
		}
		req.Tools = append(req.Tools, t.Function.Name)
	}
	req.NoTools = len(in.Tools) == 0 || in.ToolChoice == "none"
	for i, m := range in.Messages {
		p := part{text: textOf(m.Content), call: m.ToolCallID}
		switch m.Role {
		case "system", "developer":
			p.role = roleSystem
		case "user":
			p.role = roleUser
		case "assistant":
			p.role = roleModel
		case "tool":
			p.role = roleTool
		default:
			return nil, fmt.Errorf("invalid value %q for messages[%d].role", m.Role, i)
		}
		req.parts = append(req.parts, p)
		for _, c := range m.ToolCalls {
			if c.Type != "function" || c.ID == "" {
				return nil, fmt.Errorf("messages[%d].tool_calls: a call needs type function and an id", i)
			}
			req.parts = append(req.parts, part{role: roleModel, text: c.Function.Name + " " + c.Function.Arguments, call: c.ID})
		}
	}
	return req, nil
}

func (chat) whole(a *answer) any {
	message := object{"role": "assistant", "content": orNull(a.text), "refusal": nil, "annotations": []any{}}
	finish := "stop"
	if len(a.calls) > 0 {
		finish = "tool_calls"
		var calls []any
		for _, c := range a.calls {
			calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.arguments}})
		}
		message["tool_calls"] = calls
	}
	out := object{
		"id": a.id("chatcmpl-"), "object": "chat.completion", "created": a.createdAt, "model": a.req.Model,
		"choices":      []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}},
		"service_tier": "default", "system_fingerprint": nil,
	}
	if !a.turn.NoUsage {
		out["usage"] = chatUsage(a)
	}
	return out
}

func (chat) events(a *answer) []event {
	id := a.id("chatcmpl-")
	chunk := func(choices []any, usage any) event {
		data := object{
			"id": id, "object": "chat.completion.chunk", "created": a.createdAt, "model": a.req.Model,
			"service_tier": "default", "system_fingerprint": nil, "choices": choices,
		}
		if a.req.usage && !a.turn.NoUsage {
			data["usage"] = usage
		}
		return event{data: data}
	}
	delta := func(d object, finish any) event {
		return chunk([]any{object{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	out := []event{delta(object{"role": "assistant", "content": "", "refusal": nil}, nil)}
	for _, piece := range pieces(a.text) {
		out = append(out, delta(object{"content": piece}, nil))
	}
	finish := "stop"
	for i, c := range a.calls {
		finish = "tool_calls"
		out = append(out, delta(object{"tool_calls": []any{object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil))
		for _, piece := range pieces(c.arguments) {
			out = append(out, delta(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil))
		}
	}
	out = append(out, delta(object{}, finish))
	if a.req.usage && !a.turn.NoUsage {
		out = append(out, chunk([]any{}, chatUsage(a)))
	}
	return append(out, event{data: "[DONE]"})
}

func chatUsage(a *answer) object {
	return object{
		"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out,
		"prompt_tokens_details":     object{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

func (chat) failure(f Fault) (any, event) {
	body := openAIError(f)
	return body, event{data: body}
}

// openAIError is the shape of an error of both of OpenAI's protocols.
func openAIError(f Fault) object {
	kind, code := "server_error", any(nil)
	switch {
	case f.Status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case f.Status == http.StatusUnauthorized:
		kind, code = "invalid_request_error", "invalid_api_key"
	case f.Status >= 400 && f.Status < 500:
		kind = "invalid_request_error"
	}
	return object{"error": object{"message": f.Message, "type": kind, "param": nil, "code": code}}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
