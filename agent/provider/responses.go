package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"notebox/agent"
)

type responsesAPI struct {
	settings Settings
	service  responses.ResponseService
}

// Turn implements agent.Provider.
func (r *responsesAPI) Turn(ctx context.Context, p agent.Prompt, tell func(agent.Delta)) (*agent.Turn, error) {
	in := r.params(p)
	if r.settings.Whole {
		out, err := r.service.New(ctx, in)
		if err != nil {
			return nil, ofOpenAI(ctx, err)
		}
		turn, err := responsesTurn(out)
		if err == nil && turn.Text != "" {
			tell(agent.Delta{Text: turn.Text})
		}
		return turn, err
	}
	stream := r.service.NewStreaming(ctx, in)
	defer stream.Close()
	for stream.Next() {
		switch e := stream.Current(); e.Type {
		case "response.output_text.delta", "response.refusal.delta":
			tell(agent.Delta{Text: e.Delta})
		case "response.completed", "response.incomplete", "response.failed":
			return responsesTurn(&e.Response)
		case "error":
			return nil, ofStream(fmt.Errorf("%s: %s", e.Code, e.Message))
		}
	}
	if err := stream.Err(); err != nil {
		return nil, ofOpenAI(ctx, err)
	}
	return nil, ofConnection(ctx, errBrokeOff)
}

func (r *responsesAPI) params(p agent.Prompt) responses.ResponseNewParams {
	in := responses.ResponseNewParams{Model: r.settings.Model}
	if r.settings.BaseURL == openAIURL { // of others, few know these
		in.Store = openai.Bool(false)
		in.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	in.Reasoning.Effort = shared.ReasoningEffort(r.settings.Effort)
	if r.settings.MaxTokens > 0 {
		in.MaxOutputTokens = openai.Int(r.settings.MaxTokens)
	}
	if p.Instructions != "" {
		in.Instructions = openai.String(p.Instructions)
	}
	for _, m := range p.Messages {
		in.Input.OfInputItemList = append(in.Input.OfInputItemList, items(m)...)
	}
	for _, t := range p.Tools {
		in.Tools = append(in.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: t.Parameters, Strict: openai.Bool(false),
		}})
	}
	if p.NoTools && len(p.Tools) > 0 {
		in.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	}
	return in
}

// items are a message in this protocol: reasoning first, as the model had it.
func items(m agent.Message) (out []responses.ResponseInputItemUnionParam) {
	switch m.Role {
	case agent.RoleUser:
		return append(out, responses.ResponseInputItemParamOfMessage(m.Text, responses.EasyInputMessageRoleUser))
	case agent.RoleTools:
		for _, r := range m.Results {
			item := responses.ResponseInputItemParamOfFunctionCallOutput(r.Text)
			item.OfFunctionCallOutput.CallID = openai.String(r.CallID)
			out = append(out, item)
		}
		return out
	}
	var reasoning []json.RawMessage
	_ = json.Unmarshal(m.Opaque, &reasoning) // our own, or another provider's, which is left out
	for _, raw := range reasoning {
		item := param.Override[responses.ResponseReasoningItemParam](raw)
		out = append(out, responses.ResponseInputItemUnionParam{OfReasoning: &item})
	}
	if m.Text != "" {
		out = append(out, responses.ResponseInputItemParamOfMessage(m.Text, responses.EasyInputMessageRoleAssistant))
	}
	for _, c := range m.Calls {
		out = append(out, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.ID, c.Name))
	}
	return out
}

func responsesTurn(out *responses.Response) (*agent.Turn, error) {
	if out.Status == "failed" || out.Error.Message != "" {
		return nil, ofStream(fmt.Errorf("%s: %s", out.Error.Code, out.Error.Message))
	}
	if len(out.Output) == 0 && out.Status != "incomplete" {
		return nil, ofStream(errors.New("the answer has no output"))
	}
	turn := &agent.Turn{
		Usage:  agent.Usage{In: out.Usage.InputTokens, Out: out.Usage.OutputTokens},
		CutOff: out.Status == "incomplete",
	}
	var text strings.Builder
	var reasoning []json.RawMessage
	for _, item := range out.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				text.WriteString(part.Text + part.Refusal)
			}
		case "function_call":
			c := item.AsFunctionCall()
			turn.Calls = append(turn.Calls, agent.ToolCall{ID: cmp.Or(c.CallID, c.ID), Name: c.Name, Arguments: c.Arguments})
		case "reasoning":
			// One that holds nothing stands for what the provider has stored, and it stores nothing.
			if r := item.AsReasoning(); r.EncryptedContent != "" || len(r.Content) > 0 {
				reasoning = append(reasoning, json.RawMessage(r.RawJSON()))
			}
		}
	}
	turn.Text = text.String()
	if len(reasoning) > 0 {
		raw, err := json.Marshal(reasoning)
		if err != nil {
			return nil, ofStream(err)
		}
		turn.Opaque = raw
	}
	return turn, nil
}
