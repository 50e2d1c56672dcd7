package agenttest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	claude "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
)

// The official clients read what the scripted model says.

const wrongArguments = `{"code": "print('é', 1)`

func calls() agenttest.Turn {
	return agenttest.Turn{Text: "I compute it.", Reasoning: "a sum", Calls: []agenttest.Call{
		agenttest.Code("python", "print(1)"), {Name: "python", Arguments: wrongArguments},
	}}
}

func openAI(s *agenttest.Server) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL()), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

func TestOpenAIChat(t *testing.T) {
	s := agenttest.New(t, agenttest.Dialogue{Question: "sum", Turns: []agenttest.Turn{calls(), {Text: "5050"}}})
	client := openAI(s)
	p := openai.ChatCompletionNewParams{
		Model:         "scripted",
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be short"), openai.UserMessage("sum?")},
		Tools:         []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "python"})},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	stream := client.Chat.Completions.NewStreaming(context.Background(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, all.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	streamed := all.Choices[0]
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := client.Chat.Completions.New(context.Background(), p)
	require.NoError(t, err)
	for _, c := range []openai.ChatCompletionChoice{streamed, whole.Choices[0]} {
		require.Equal(t, "tool_calls", c.FinishReason)
		require.Equal(t, "I compute it.", c.Message.Content)
		require.Len(t, c.Message.ToolCalls, 2)
		require.Equal(t, "python", c.Message.ToolCalls[0].Function.Name)
		require.JSONEq(t, `{"code":"print(1)"}`, c.Message.ToolCalls[0].Function.Arguments)
		require.Equal(t, wrongArguments, c.Message.ToolCalls[1].Function.Arguments)
	}
	require.Positive(t, all.Usage.PromptTokens)
	require.Positive(t, whole.Usage.CompletionTokens)

	p.Messages = append(p.Messages, whole.Choices[0].Message.ToParam())
	for _, c := range whole.Choices[0].Message.ToolCalls {
		p.Messages = append(p.Messages, openai.ToolMessage("1", c.ID))
	}
	whole, err = client.Chat.Completions.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "stop", whole.Choices[0].FinishReason)
	require.Equal(t, "5050", whole.Choices[0].Message.Content)
}

func TestOpenAIResponses(t *testing.T) {
	s := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{calls(), {Text: "It is {{tool:=(\\d+)}}."}}})
	client := openAI(s)
	p := responses.ResponseNewParams{
		Model: "scripted", Instructions: openai.String("be short"),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage("sum?", responses.EasyInputMessageRoleUser),
		}},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "python", Parameters: map[string]any{"type": "object"}, Strict: openai.Bool(false)}}},
	}
	stream := client.Responses.NewStreaming(context.Background(), p)
	text, arguments, last := "", "", ""
	var streamed responses.Response
	for stream.Next() {
		e := stream.Current()
		switch last = e.Type; last {
		case "response.output_text.delta":
			text += e.Delta
		case "response.function_call_arguments.delta":
			arguments += e.Delta
		case "response.completed":
			streamed = e.Response
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "response.completed", last)
	require.Equal(t, "I compute it.", text)
	require.Equal(t, `{"code":"print(1)"}`+wrongArguments, arguments)
	whole, err := client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	for _, r := range []responses.Response{streamed, *whole} {
		require.Equal(t, "I compute it.", r.OutputText())
		require.Len(t, r.Output, 4)
		require.Equal(t, "reasoning", r.Output[0].Type)
		require.Equal(t, wrongArguments, r.Output[3].AsFunctionCall().Arguments)
		require.Positive(t, r.Usage.InputTokens)
	}
	items := p.Input.OfInputItemList
	for _, o := range whole.Output[2:] {
		c := o.AsFunctionCall()
		items = append(items, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.CallID, c.Name))
	}
	for _, o := range whole.Output[2:] {
		item := responses.ResponseInputItemParamOfFunctionCallOutput("x=7")
		item.OfFunctionCallOutput.CallID = openai.String(o.AsFunctionCall().CallID)
		items = append(items, item)
	}
	p.Input.OfInputItemList = items
	whole, err = client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "It is 7.", whole.OutputText())
}

func TestAnthropicMessages(t *testing.T) {
	first := calls()
	first.Calls = first.Calls[:1]
	s := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{first, {Text: "5050"}}})
	client := anthropic.NewClient(claude.WithoutEnvironmentDefaults(), claude.WithBaseURL(s.Root()), claude.WithAPIKey("key"), claude.WithMaxRetries(0))
	p := anthropic.MessageNewParams{
		Model: "scripted", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("sum?"))},
		Tools:    []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "python")},
	}
	stream := client.Messages.NewStreaming(context.Background(), p)
	var streamed anthropic.Message
	for stream.Next() {
		require.NoError(t, streamed.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	whole, err := client.Messages.New(context.Background(), p)
	require.NoError(t, err)
	for _, m := range []anthropic.Message{streamed, *whole} {
		require.Equal(t, anthropic.StopReasonToolUse, m.StopReason)
		require.Len(t, m.Content, 3)
		require.Equal(t, "a sum", m.Content[0].Thinking)
		require.NotEmpty(t, m.Content[0].Signature)
		require.Equal(t, "I compute it.", m.Content[1].Text)
		require.JSONEq(t, `{"code":"print(1)"}`, string(m.Content[2].Input))
		require.Positive(t, m.Usage.InputTokens)
		require.Positive(t, m.Usage.OutputTokens)
	}
	p.Messages = append(p.Messages, whole.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(whole.Content[2].ID, "5050", false)))
	whole, err = client.Messages.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "5050", whole.Content[0].Text)
}

func TestFaults(t *testing.T) {
	s := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "a long enough text", Faults: []agenttest.Fault{
		{Status: http.StatusTooManyRequests, RetryAfter: "7"}, {Cut: true}, {InStream: true, Message: "broken"},
	}}}})
	client := openAI(s)
	p := openai.ChatCompletionNewParams{Model: "scripted", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}
	_, err := client.Chat.Completions.New(context.Background(), p)
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "7", refused.Response.Header.Get("Retry-After"))
	require.Equal(t, "rate_limit_exceeded", refused.Code)

	read := func() error {
		stream := client.Chat.Completions.NewStreaming(context.Background(), p)
		for stream.Next() {
		}
		return stream.Err()
	}
	require.Error(t, read())
	require.ErrorContains(t, read(), "broken")
	require.NoError(t, read())
}

func TestRefusesWhatTheServicesRefuse(t *testing.T) {
	s, err := agenttest.Start("127.0.0.1:0", agenttest.Script{Dialogues: []agenttest.Dialogue{{Turns: []agenttest.Turn{{Text: "x"}}}}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for _, c := range []struct {
		desc, path, body, want string
	}{
		{"a result without its call", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"1"}]}`, "no tool call found"},
		{"a call without its result", "/responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"p","arguments":"{}"}]}`, "no result"},
		{"no max_tokens", "/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, "max_tokens"},
		{"no model", "/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, "model"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			status, text := post(t, s.URL()+c.path, c.body)
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, text, c.want)
		})
	}
	require.Len(t, s.Failures(), 4)
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
	return res.StatusCode, string(raw)
}
