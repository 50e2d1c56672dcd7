package provider

import (
	"cmp"
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"notebox/agent"
)

// noKey is what a server is sent that wants no key: the client always sends one.
const noKey = "none"

type chat struct {
	settings Settings
	service  openai.ChatCompletionService
}

// openAIOptions leave trying again to Retry.
func openAIOptions(s Settings) []option.RequestOption {
	return []option.RequestOption{
		option.WithBaseURL(s.BaseURL), option.WithAPIKey(cmp.Or(s.Key, noKey)), option.WithHTTPClient(s.Client), option.WithMaxRetries(0),
	}
}

// Turn implements agent.Provider.
func (c *chat) Turn(ctx context.Context, p agent.Prompt, tell func(agent.Delta)) (*agent.Turn, error) {
	in := c.params(p)
	if c.settings.Whole {
		out, err := c.service.New(ctx, in)
		if err != nil {
			return nil, ofOpenAI(ctx, err)
		}
		return chatTurn(out, tell)
	}
	in.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := c.service.NewStreaming(ctx, in)
	defer stream.Close()
	var all chatPieces
	for stream.Next() {
		all.add(stream.Current(), tell)
	}
	if err := stream.Err(); err != nil {
		return nil, ofOpenAI(ctx, err)
	}
	if !all.ended {
		return nil, ofConnection(ctx, errBrokeOff)
	}
	return &all.turn, nil
}

func (c *chat) params(p agent.Prompt) openai.ChatCompletionNewParams {
	in := openai.ChatCompletionNewParams{Model: c.settings.Model, ReasoningEffort: shared.ReasoningEffort(c.settings.Effort)}
	if c.settings.MaxTokens > 0 {
		in.MaxCompletionTokens = openai.Int(c.settings.MaxTokens)
	}
	if p.Instructions != "" {
		in.Messages = append(in.Messages, openai.SystemMessage(p.Instructions))
	}
	for _, m := range p.Messages {
		switch m.Role {
		case agent.RoleUser:
			in.Messages = append(in.Messages, openai.UserMessage(m.Text))
		case agent.RoleTools:
			for _, r := range m.Results {
				in.Messages = append(in.Messages, openai.ToolMessage(r.Text, r.CallID))
			}
		default:
			in.Messages = append(in.Messages, chatAnswer(m))
		}
	}
	for _, t := range p.Tools {
		in.Tools = append(in.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: t.Parameters,
		}))
	}
	if p.NoTools && len(p.Tools) > 0 {
		in.ToolChoice.OfAuto = openai.String(string(openai.ChatCompletionToolChoiceOptionAutoNone))
	}
	return in
}

func chatAnswer(m agent.Message) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.Calls) == 0 {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// chatPieces puts the chunks of a stream together. Not by the client's accumulator,
// as other servers than OpenAI's leave out the index of a call, or its id.
type chatPieces struct {
	turn  agent.Turn
	at    map[int64]int // the place in Calls of the call that has an index
	ended bool
}

func (a *chatPieces) add(chunk openai.ChatCompletionChunk, tell func(agent.Delta)) {
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.turn.Usage = agent.Usage{In: u.PromptTokens, Out: u.CompletionTokens}
	}
	if len(chunk.Choices) == 0 {
		return
	}
	choice := chunk.Choices[0]
	if text := choice.Delta.Content + choice.Delta.Refusal; text != "" {
		a.turn.Text += text
		tell(agent.Delta{Text: text})
	}
	for _, c := range choice.Delta.ToolCalls {
		call := a.call(c.Index, c.ID)
		call.Name += c.Function.Name
		call.Arguments += c.Function.Arguments
	}
	if choice.FinishReason != "" {
		a.ended, a.turn.CutOff = true, choice.FinishReason == "length"
	}
}

// call is the one that a piece belongs to: another id under the same index is another
// call.
func (a *chatPieces) call(index int64, id string) *agent.ToolCall {
	if i, ok := a.at[index]; ok && (id == "" || a.turn.Calls[i].ID == id) {
		return &a.turn.Calls[i]
	}
	if a.at == nil {
		a.at = map[int64]int{}
	}
	a.at[index] = len(a.turn.Calls)
	a.turn.Calls = append(a.turn.Calls, agent.ToolCall{ID: id})
	return &a.turn.Calls[len(a.turn.Calls)-1]
}

func chatTurn(out *openai.ChatCompletion, tell func(agent.Delta)) (*agent.Turn, error) {
	if len(out.Choices) == 0 {
		return nil, ofStream(errors.New("the answer has no choice"))
	}
	choice := out.Choices[0]
	turn := &agent.Turn{
		Text:   choice.Message.Content + choice.Message.Refusal,
		Usage:  agent.Usage{In: out.Usage.PromptTokens, Out: out.Usage.CompletionTokens},
		CutOff: choice.FinishReason == "length",
	}
	for _, c := range choice.Message.ToolCalls {
		turn.Calls = append(turn.Calls, agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	if turn.Text != "" {
		tell(agent.Delta{Text: turn.Text})
	}
	return turn, nil
}

// ofOpenAI is an error of OpenAI's client.
func ofOpenAI(ctx context.Context, err error) error {
	var refused *openai.Error
	var inStream *ssestream.StreamError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused) && refused.Response != nil:
		return ofStatus(refused.StatusCode, refused.Response.Header, err)
	case errors.As(err, &inStream):
		return ofStream(err)
	}
	return ofConnection(ctx, err)
}
