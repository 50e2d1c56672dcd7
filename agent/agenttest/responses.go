package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// responses is OpenAI's Responses
// (https://platform.openai.com/docs/api-reference/responses).
type responses struct{}

func (responses) read(r *http.Request, body []byte) (*Request, error) {
	if err := bearer(r); err != nil {
		return nil, err
	}
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Include      []string        `json:"include"`
		Tools        []struct{ Type, Name string }
		ToolChoice   any `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	req := &Request{Protocol: "responses", Model: in.Model, Stream: in.Stream, usage: true}
	req.crypt = slices.Contains(in.Include, "reasoning.encrypted_content")
	for _, t := range in.Tools {
		if t.Type == "function" && t.Name == "" {
			return nil, fmt.Errorf("missing required parameter: tools[0].name")
		}
		req.Tools = append(req.Tools, t.Name)
	}
	req.NoTools = len(in.Tools) == 0 || in.ToolChoice == "none"
	if in.Instructions != "" {
		req.parts = append(req.parts, part{role: roleSystem, text: in.Instructions})
	}
	var question string
	if json.Unmarshal(in.Input, &question) == nil {
		req.parts = append(req.parts, part{role: roleUser, text: question})
		return req, nil
	}
	var items []inputItem
	if err := json.Unmarshal(in.Input, &items); err != nil {
		return nil, fmt.Errorf("invalid type for input: %w", err)
	}
	for i, item := range items {
		p, err := item.part()
		if err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		req.parts = append(req.parts, p)
	}
	return req, nil
}

// inputItem is what a conversation is made of in this protocol.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

func (i inputItem) part() (part, error) {
	switch i.Type {
	case "function_call":
		return part{role: roleModel, text: i.Name + " " + i.Arguments, call: i.CallID}, nil
	case "function_call_output":
		return part{role: roleTool, text: textOf(i.Output), call: i.CallID}, nil
	case "reasoning":
		return part{role: roleModel}, nil
	case "", "message":
	default:
		return part{}, fmt.Errorf("invalid value %q for type", i.Type)
	}
	switch i.Role {
	case "system", "developer":
		return part{role: roleSystem, text: textOf(i.Content)}, nil
	case "user":
		return part{role: roleUser, text: textOf(i.Content)}, nil
	case "assistant":
		return part{role: roleModel, text: textOf(i.Content)}, nil
	}
	return part{}, fmt.Errorf("invalid value %q for role", i.Role)
}

// outputItems are the answer's, with what a stream has between added and done.
func outputItems(a *answer) (items []object, between [][]event) {
	if a.turn.Reasoning != "" {
		item := object{"id": a.id("rs_"), "type": "reasoning", "summary": []any{}}
		if a.req.crypt {
			item["encrypted_content"] = "encrypted:" + a.turn.Reasoning
		} else {
			item["content"] = []any{object{"type": "reasoning_text", "text": a.turn.Reasoning}}
		}
		items, between = append(items, item), append(between, nil)
	}
	if a.text != "" || len(a.calls) == 0 {
		id, index := a.id("msg_"), len(items)
		at := func(e object) object {
			e["item_id"], e["output_index"], e["content_index"] = id, index, 0
			return e
		}
		text := object{"type": "output_text", "annotations": []any{}, "logprobs": []any{}, "text": a.text}
		events := []event{{"response.content_part.added", at(object{"part": object{"type": "output_text", "annotations": []any{}, "logprobs": []any{}, "text": ""}})}}
		for _, piece := range pieces(a.text) {
			events = append(events, event{"response.output_text.delta", at(object{"delta": piece, "logprobs": []any{}})})
		}
		events = append(events, event{"response.output_text.done", at(object{"text": a.text, "logprobs": []any{}})}, event{"response.content_part.done", at(object{"part": text})})
		items = append(items, object{"id": id, "type": "message", "status": "completed", "role": "assistant", "content": []any{text}})
		between = append(between, events)
	}
	for _, c := range a.calls {
		id, index := a.id("fc_"), len(items)
		var events []event
		for _, piece := range pieces(c.arguments) {
			events = append(events, event{"response.function_call_arguments.delta", object{"item_id": id, "output_index": index, "delta": piece}})
		}
		events = append(events, event{"response.function_call_arguments.done", object{"item_id": id, "output_index": index, "name": c.name, "arguments": c.arguments}})
		items = append(items, object{"id": id, "type": "function_call", "status": "completed", "call_id": c.id, "name": c.name, "arguments": c.arguments})
		between = append(between, events)
	}
	return items, between
}

func (responses) whole(a *answer) any {
	items, _ := outputItems(a)
	return responseOf(a, a.id("resp_"), "completed", items)
}

func (responses) events(a *answer) []event {
	id := a.id("resp_")
	items, between := outputItems(a)
	out := []event{
		{"response.created", object{"response": responseOf(a, id, "in_progress", []object{})}},
		{"response.in_progress", object{"response": responseOf(a, id, "in_progress", []object{})}},
	}
	for i, item := range items {
		out = append(out, event{"response.output_item.added", object{"output_index": i, "item": begun(item)}})
		out = append(out, between[i]...)
		out = append(out, event{"response.output_item.done", object{"output_index": i, "item": item}})
	}
	out = append(out, event{"response.completed", object{"response": responseOf(a, id, "completed", items)}})
	for i, e := range out {
		data := e.data.(object)
		data["type"], data["sequence_number"] = e.name, i
	}
	return out
}

// begun is an item of which nothing is known but what it is.
func begun(item object) object {
	out := object{}
	for name, value := range item {
		out[name] = value
	}
	switch item["type"] {
	case "message":
		out["status"], out["content"] = "in_progress", []any{}
	case "function_call":
		out["status"], out["arguments"] = "in_progress", ""
	}
	return out
}

func responseOf(a *answer, id, status string, items []object) object {
	var usage any
	if status == "completed" && !a.turn.NoUsage {
		usage = object{
			"input_tokens": a.in, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": a.out, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.in + a.out,
		}
	}
	return object{
		"id": id, "object": "response", "created_at": a.createdAt, "status": status, "background": false, "error": nil,
		"incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "model": a.req.Model, "output": items,
		"parallel_tool_calls": true, "previous_response_id": nil, "reasoning": object{"effort": nil, "summary": nil},
		"service_tier": "default", "store": false, "temperature": 1.0, "text": object{"format": object{"type": "text"}},
		"tool_choice": "auto", "tools": []any{}, "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": nil, "metadata": object{},
	}
}

func (responses) failure(f Fault) (any, event) {
	inStream := object{"type": "error", "sequence_number": 0, "code": "server_error", "message": f.Message, "param": nil}
	if f.Message == "" {
		inStream["message"] = "The scripted model fails with " + http.StatusText(http.StatusInternalServerError)
	}
	return openAIError(f), event{"error", inStream}
}
