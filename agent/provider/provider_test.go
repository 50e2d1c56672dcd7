package provider_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
)

// patience is far above what anything here takes.
const patience = time.Minute

// fast tries again without losing time.
var fast = provider.RetryOptions{Pause: time.Millisecond}

// each runs a test with every way of asking, by the clients of the makers.
func each(t *testing.T, test func(t *testing.T, s provider.Settings)) {
	for _, api := range []provider.API{provider.Chat, provider.Responses, provider.Claude} {
		for _, whole := range []bool{false, true} {
			name := string(api) + map[bool]string{true: "/whole", false: "/streamed"}[whole]
			t.Run(name, func(t *testing.T) {
				test(t, provider.Settings{API: api, Model: "scripted", Key: "key", Whole: whole, Retry: fast})
			})
		}
	}
}

func open(t *testing.T, s provider.Settings, model *agenttest.Server) agent.Provider {
	t.Helper()
	if s.BaseURL = model.URL(); s.API == provider.Claude {
		s.BaseURL = model.Root()
	}
	p, err := provider.Open(s)
	require.NoError(t, err)
	return p
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

var python = agent.Tool{Name: "python", Description: "runs code", Parameters: map[string]any{
	"type": "object", "properties": map[string]any{"code": map[string]any{"type": "string"}}, "required": []string{"code"},
}}

func ask(text string) agent.Prompt {
	return agent.Prompt{Instructions: "be short", Messages: []agent.Message{{Role: agent.RoleUser, Text: text}}, Tools: []agent.Tool{python}}
}

func TestAConversationWithCalls(t *testing.T) {
	each(t, func(t *testing.T, s provider.Settings) {
		model := agenttest.New(t, agenttest.Dialogue{Question: "sum", Turns: []agenttest.Turn{
			{Text: "Let me see …", Reasoning: "add them", Calls: []agenttest.Call{agenttest.Code("python", "print(1)"), agenttest.Code("python", "print(2)")}},
			{Text: "It is {{tool}}.", Expect: []string{"be short", "sum", "Let me see", "print(1)", "one", "two"}},
		}})
		p := open(t, s, model)
		prompt := ask("sum?")
		var told strings.Builder
		tell := func(d agent.Delta) { told.WriteString(d.Text) }

		turn, err := p.Turn(within(t), prompt, tell)
		require.NoError(t, err)
		require.Equal(t, "Let me see …", turn.Text)
		require.Equal(t, turn.Text, told.String())
		require.Len(t, turn.Calls, 2)
		require.Equal(t, "python", turn.Calls[1].Name)
		require.JSONEq(t, `{"code":"print(2)"}`, turn.Calls[1].Arguments)
		require.NotEmpty(t, turn.Calls[0].ID)
		require.NotEqual(t, turn.Calls[0].ID, turn.Calls[1].ID)
		require.Positive(t, turn.Usage.In)
		require.Positive(t, turn.Usage.Out)
		require.False(t, turn.CutOff)
		require.Equal(t, s.API != provider.Chat, turn.Opaque != nil)

		prompt.Messages = append(prompt.Messages,
			agent.Message{Role: agent.RoleModel, Text: turn.Text, Calls: turn.Calls, Opaque: turn.Opaque},
			agent.Message{Role: agent.RoleTools, Results: []agent.ToolResult{{CallID: turn.Calls[0].ID, Text: "one"}, {CallID: turn.Calls[1].ID, Text: "two", Failed: true}}},
		)
		prompt.NoTools = true
		turn, err = p.Turn(within(t), prompt, func(agent.Delta) {})
		require.NoError(t, err)
		require.Equal(t, "It is two.", turn.Text)
		require.Empty(t, turn.Calls)
		last := model.Requests()[1]
		require.True(t, last.NoTools)
		require.Equal(t, []string{"python"}, last.Tools)
		if s.API != provider.Chat {
			require.Contains(t, string(last.Body), "add them", "the reasoning came back")
		}
	})
}

func TestCallsThatAreBrokenComeAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, s provider.Settings) {
		if s.API == provider.Claude && s.Whole {
			return // whole, its answers hold the input as JSON: there are no broken ones
		}
		broken := agenttest.Call{Name: "python", Arguments: `{"code": "print(1)`}
		model := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: []agenttest.Call{broken}}}})
		turn, err := open(t, s, model).Turn(within(t), ask("x"), func(agent.Delta) {})
		require.NoError(t, err)
		require.Equal(t, string(broken.Arguments), turn.Calls[0].Arguments)
	})
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, s provider.Settings) {
		faults := []agenttest.Fault{{Status: http.StatusTooManyRequests, RetryAfter: "1"}, {Status: http.StatusServiceUnavailable}, {Cut: true}}
		if !s.Whole {
			faults = append(faults, agenttest.Fault{InStream: true})
		}
		model := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "This is the text of the answer.", Faults: faults, NoUsage: true}}})
		var told string
		begun := time.Now()
		turn, err := open(t, s, model).Turn(within(t), ask("x"), func(d agent.Delta) {
			if d.Again {
				told = ""
			}
			told += d.Text
		})
		require.NoError(t, err)
		require.Equal(t, "This is the text of the answer.", turn.Text)
		require.Equal(t, turn.Text, told)
		require.GreaterOrEqual(t, time.Since(begun), time.Second, "Retry-After")
		require.Len(t, model.Requests(), len(faults)+1)
	})
}

func TestWhatDoesNotPass(t *testing.T) {
	each(t, func(t *testing.T, s provider.Settings) {
		for _, c := range []struct {
			desc   string
			faults []agenttest.Fault
			status int
			tries  int
			public string
		}{
			{"a wrong key", []agenttest.Fault{{Status: http.StatusUnauthorized, Message: "Incorrect API key provided: sk-1234***"}}, 401, 1, "does not accept the service's key"},
			{"no such model", []agenttest.Fault{{Status: http.StatusNotFound}}, 404, 1, "does not have the model"},
			{"to be tried much later", []agenttest.Fault{{Status: http.StatusTooManyRequests, RetryAfter: "3600"}}, 429, 1, "takes no more requests"},
			{"always broken", []agenttest.Fault{{Status: 500}, {Status: 500}, {Status: 500}, {Status: 500}, {Status: 500}}, 500, 5, "status 500"},
		} {
			t.Run(c.desc, func(t *testing.T) {
				model := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "x", Faults: c.faults}}})
				_, err := open(t, s, model).Turn(within(t), ask("x"), func(agent.Delta) {})
				var failed *provider.Error
				require.ErrorAs(t, err, &failed)
				require.Equal(t, c.status, failed.Status)
				require.Equal(t, c.tries, failed.Tries)
				require.Contains(t, failed.Public(), c.public)
				require.NotContains(t, failed.Public(), "sk-1234")
			})
		}
	})
}

func TestATurnEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, s provider.Settings) {
		model := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "x", Faults: []agenttest.Fault{{Hang: true}}}}})
		ctx, cancel := context.WithCancel(within(t))
		time.AfterFunc(50*time.Millisecond, cancel)
		begun := time.Now()
		_, err := open(t, s, model).Turn(ctx, ask("x"), func(agent.Delta) {})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(begun), patience/2)
	})
}

func TestATryThatTakesTooLongIsRepeated(t *testing.T) {
	model := agenttest.New(t, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "x", Faults: []agenttest.Fault{{Hang: true}}}}})
	s := provider.Settings{API: provider.Chat, Model: "m", Retry: provider.RetryOptions{Attempt: time.Second, Pause: time.Millisecond, Tries: 20}}
	turn, err := open(t, s, model).Turn(within(t), ask("x"), func(agent.Delta) {})
	require.NoError(t, err)
	require.Equal(t, "x", turn.Text)
}

func TestNobodyAnswers(t *testing.T) {
	model, err := agenttest.Start("127.0.0.1:0", agenttest.Script{})
	require.NoError(t, err)
	address := model.URL()
	require.NoError(t, model.Close())
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "m", BaseURL: address, Retry: fast})
	require.NoError(t, err)
	_, err = p.Turn(within(t), ask("x"), func(agent.Delta) {})
	var failed *provider.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, provider.DefaultTries, failed.Tries)
	require.True(t, failed.Passes())
}

func TestFromEnvironment(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		desc string
		in   provider.Settings
		env  env
		want provider.Settings
		none bool
	}{
		{desc: "nothing", none: true},
		{desc: "half of Cloudflare's", env: env{"CLOUDFLARE_API_KEY": "c"}, none: true},
		{desc: "a model alone", in: provider.Settings{Model: "m"}, none: true},
		{desc: "off", in: provider.Settings{Model: provider.Off}, env: env{"OPENAI_API_KEY": "o"}, none: true},
		{desc: "OpenAI's key", env: env{"OPENAI_API_KEY": "o"},
			want: provider.Settings{API: provider.Responses, Model: provider.DefaultOpenAIModel, BaseURL: "https://api.openai.com/v1", Key: "o"}},
		{desc: "another server", in: provider.Settings{Model: "llama"}, env: env{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
			want: provider.Settings{API: provider.Chat, Model: "llama", BaseURL: "http://127.0.0.1:1/v1"}},
		{desc: "a setting goes before a variable", in: provider.Settings{API: provider.Responses, BaseURL: "http://x/v1", Model: "m"}, env: env{"OPENAI_BASE_URL": "http://y/v1", "OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"},
			want: provider.Settings{API: provider.Responses, Model: "m", BaseURL: "http://x/v1", Key: "o"}},
		{desc: "Anthropic's key", env: env{"ANTHROPIC_API_KEY": "a"},
			want: provider.Settings{API: provider.Claude, Model: provider.DefaultClaudeModel, BaseURL: "https://api.anthropic.com", Key: "a"}},
		{desc: "by the model's name", in: provider.Settings{Model: "claude-x"}, env: env{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"},
			want: provider.Settings{API: provider.Claude, Model: "claude-x", BaseURL: "https://api.anthropic.com", Key: "a"}},
		{desc: "Cloudflare's", env: env{"CLOUDFLARE_API_KEY": "c", "CLOUDFLARE_ACCOUNT_ID": "acc"},
			want: provider.Settings{API: provider.Responses, Model: provider.DefaultCloudflareModel, BaseURL: "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1", Key: "c", Whole: true}},
		{desc: "another model of Cloudflare's", in: provider.Settings{Model: "@cf/meta/llama"}, env: env{"CLOUDFLARE_API_KEY": "c", "CLOUDFLARE_ACCOUNT_ID": "acc", "OPENAI_API_KEY": "o"},
			want: provider.Settings{API: provider.Chat, Model: "@cf/meta/llama", BaseURL: "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1", Key: "c"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := provider.FromEnvironment(c.in, func(name string) string { return c.env[name] })
			if c.none {
				require.ErrorIs(t, err, provider.ErrNone)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			_, err = provider.Open(got)
			require.NoError(t, err)
		})
	}
	_, err := provider.FromEnvironment(provider.Settings{API: "telepathy"}, func(string) string { return "" })
	require.ErrorContains(t, err, "telepathy")
}
