package discord_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/discord"
	"notebox/agent/discord/discordtest"
	"notebox/agent/provider"
	"notebox/agent/tool"
	"notebox/tests/logged"
)

const (
	patience = time.Minute
	pause    = 20 * time.Millisecond
	channel  = "700"
	user     = "500"
)

var chart = []byte("\x89PNG not really")

// sandbox is an Executor that knows a few programs.
type sandbox struct {
	files *httptest.Server
	hold  chan struct{} // that "wait" waits for

	mu      sync.Mutex
	runs    []agent.Run
	content map[string]string // of the files of the last run
	working int
	most    int
}

func (s *sandbox) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	s.mu.Lock()
	s.runs, s.content = append(s.runs, r), map[string]string{}
	s.working++
	s.most = max(s.most, s.working)
	for _, f := range r.Files {
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		s.content[f.Name] = string(raw)
	}
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.working--; s.mu.Unlock() }()
	switch {
	case strings.Contains(r.Code, "wait"):
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case strings.Contains(r.Code, "plot"):
		return &tool.Result{Status: "ok", Text: "drawn\n", Images: []tool.Image{{Name: "image_0.png", MediaType: "image/png", URL: s.files.URL + "/chart.png"}}}, nil
	case strings.Contains(r.Code, "big"):
		return &tool.Result{Status: "ok", Files: []tool.File{
			{Path: "/mnt/data/big.bin", Bytes: discord.DefaultUploadLimit + 1, URL: s.files.URL + "/big.bin"},
			{Path: "/mnt/data/gone.txt", Bytes: 3, URL: s.files.URL + "/gone.txt"},
			{Path: "/mnt/data/lost.txt", Error: "too many files"},
		}}, nil
	case strings.Contains(r.Code, "raise"):
		return &tool.Result{Status: "error", Text: "ValueError: @everyone ``` https://evil.example/x\n", Error: &tool.Raised{Name: "ValueError"}}, nil
	case strings.Contains(r.Code, "much"):
		return &tool.Result{Status: "ok", Text: strings.Repeat("a line of output\n", 2000)}, nil
	}
	return &tool.Result{Status: "ok", Text: "ran " + r.Code + "\n"}, nil
}

func newSandbox(t *testing.T) *sandbox {
	s := &sandbox{hold: make(chan struct{})}
	s.files = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/chart.png" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(chart)
	}))
	t.Cleanup(s.files.Close)
	return s
}

// world is a bot at work.
type world struct {
	*discordtest.Server
	sandbox *sandbox
	stop    func()
	log     *logged.Buffer
}

func begin(t *testing.T, change func(*discord.Config), dialogues ...agenttest.Dialogue) *world {
	t.Helper()
	w := &world{Server: discordtest.New(t), sandbox: newSandbox(t), log: &logged.Buffer{}}
	c := w.config(t, change, dialogues...)
	bot, err := discord.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bot.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the bot does not end")
		}
	})
	t.Cleanup(w.stop)
	require.Eventually(t, func() bool { return len(w.Commands()) == 1 }, patience, pause)
	return w
}

func (w *world) config(t *testing.T, change func(*discord.Config), dialogues ...agenttest.Dialogue) discord.Config {
	t.Helper()
	model := agenttest.New(t, dialogues...)
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "script", BaseURL: model.URL(), Retry: provider.RetryOptions{Pause: time.Millisecond}})
	require.NoError(t, err)
	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: p}, Executor: w.sandbox})
	require.NoError(t, err)
	c := discord.Config{
		Token: discordtest.Token, Agent: a, Executor: w.sandbox, Guilds: []string{discordtest.Guild}, Users: []string{user},
		API: w.URL(), CDN: []string{w.URL()}, Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	return c
}

// wait waits until the channel where has its messages.
func (w *world) wait(t *testing.T, where string, count int) []discordtest.Sent {
	t.Helper()
	require.Eventually(t, func() bool { return len(w.Sent(where)) >= count }, patience, pause, "%s", w.log)
	sent := w.Sent(where)
	require.Len(t, sent, count)
	for _, m := range sent {
		require.JSONEq(t, `{"parse":[],"replied_user":false}`, m.Mentions)
		require.NotZero(t, m.Flags&discordgo.MessageFlagsSuppressEmbeds)
	}
	return sent
}

func python(code string) []agenttest.Call { return []agenttest.Call{agenttest.Code(tool.Name, code)} }

func said(question, text string) agenttest.Dialogue {
	return agenttest.Dialogue{Question: question, Turns: []agenttest.Turn{{Text: text}}}
}

func TestWhoIsAnswered(t *testing.T) {
	other := &discordgo.User{ID: "501", Username: "ben"}
	dm := func(author *discordgo.User) discordgo.Message {
		return discordgo.Message{ChannelID: "900", Author: author, Content: "dm question"}
	}
	with := func(m discordgo.Message, change func(*discordgo.Message)) discordgo.Message { change(&m); return m }
	for _, c := range []struct {
		desc          string
		guilds, users []string
		message       discordgo.Message
		want          bool
	}{
		{"a mention of an allowed user in an allowed guild", []string{discordtest.Guild}, []string{user}, discordtest.Mention("q"), true},
		{"anybody in an allowed guild", []string{discordtest.Guild}, nil, with(discordtest.Mention("q"), func(m *discordgo.Message) { m.Author = other }), true},
		{"a user who is not named", []string{discordtest.Guild}, []string{user}, with(discordtest.Mention("q"), func(m *discordgo.Message) { m.Author = other }), false},
		{"a guild that is not named", []string{"1"}, []string{user}, discordtest.Mention("q"), false},
		{"an allowed user in any guild, where none is named", nil, []string{user}, discordtest.Mention("q"), false},
		{"no mention", []string{discordtest.Guild}, nil, discordgo.Message{GuildID: discordtest.Guild, Content: "hello all"}, false},
		{"everyone is not the bot", []string{discordtest.Guild}, nil, discordgo.Message{GuildID: discordtest.Guild, Content: "@everyone", MentionEveryone: true}, false},
		{"a direct message of a named user", nil, []string{user}, dm(nil), true},
		{"a direct message of somebody of an allowed guild", []string{discordtest.Guild}, nil, dm(nil), false},
		{"a direct message of somebody else", nil, []string{user}, dm(other), false},
		{"another bot", []string{discordtest.Guild}, nil, with(discordtest.Mention("q"), func(m *discordgo.Message) { m.Author = &discordgo.User{ID: user, Bot: true} }), false},
		{"a webhook", []string{discordtest.Guild}, nil, with(discordtest.Mention("q"), func(m *discordgo.Message) { m.WebhookID = "1" }), false},
		{"somebody joined", []string{discordtest.Guild}, nil, with(discordtest.Mention("q"), func(m *discordgo.Message) { m.Type = discordgo.MessageTypeGuildMemberJoin }), false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := begin(t, func(config *discord.Config) { config.Guilds, config.Users = c.guilds, c.users }, said("", "An answer."))
			where := c.message.ChannelID
			if where == "" {
				where = channel
			}
			id := w.Message(c.message)
			if c.want {
				sent := w.wait(t, where, 1)
				require.Equal(t, "An answer.", sent[0].Content)
				require.Equal(t, id, sent[0].Reply)
				require.Positive(t, w.Typing(where))
				return
			}
			w.stop() // what was begun would have an end by now
			require.Empty(t, w.Sent(where))
		})
	}
}

func TestNobodyIsAllowedByDefault(t *testing.T) {
	w := &world{Server: discordtest.New(t), sandbox: newSandbox(t), log: &logged.Buffer{}}
	for _, c := range []struct {
		desc   string
		change func(*discord.Config)
		want   string
	}{
		{"nobody", func(c *discord.Config) { c.Guilds, c.Users = nil, nil }, "nobody is allowed"},
		{"a name in place of an id", func(c *discord.Config) { c.Guilds = []string{"my guild"} }, "an id is a number"},
		{"no token", func(c *discord.Config) { c.Token = "" }, "a token"},
		{"no address", func(c *discord.Config) { c.API = "discord" }, "no address"},
		{"no address of attachments", func(c *discord.Config) { c.CDN = []string{"ftp://x"} }, "no address"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := discord.New(w.config(t, c.change))
			require.ErrorContains(t, err, c.want)
		})
	}
	bot, err := discord.New(w.config(t, func(c *discord.Config) { c.Token = "another" }))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.ErrorContains(t, bot.Run(ctx), "the token is not accepted")
}

// TestDialogue is a talk with a file in, a chart out, a long answer, and a connection
// that breaks in the middle.
func TestDialogue(t *testing.T) {
	long := longAnswer()
	w := begin(t, nil,
		agenttest.Dialogue{Question: "Draw", Turns: []agenttest.Turn{
			{Calls: python("plot"), Expect: []string{"/mnt/data/rides.csv", "a,b"}},
			{Text: "![the chart](image_0.png)\nThere it is."},
		}},
		agenttest.Dialogue{Question: "at length", Turns: []agenttest.Turn{{Text: long, Expect: []string{"There it is"}}}},
		said("after", "Yes."),
	)
	m := discordtest.Mention("Draw this")
	m.Attachments = []*discordgo.MessageAttachment{w.Attach("rides.csv", []byte("a,b\n1,2\n"))}
	w.Message(m)
	sent := w.wait(t, channel, 1)
	require.Equal(t, "the chart\nThere it is.", sent[0].Content)
	require.Equal(t, []discordtest.File{{Name: "image_0.png", Content: chart}}, sent[0].Files)
	require.Equal(t, map[string]string{"rides.csv": "a,b\n1,2\n"}, w.sandbox.content)

	before := w.Counts()
	w.WhenTyping(w.Drop)
	asked := w.Message(discordtest.Mention("Explain at length"))
	require.Eventually(t, func() bool { return w.Counts().Resumed > before.Resumed }, patience, pause)
	w.Again("MESSAGE_CREATE")
	w.Again("MESSAGE_CREATE")
	parts := w.wait(t, channel, 7)[1:]
	require.Equal(t, asked, parts[0].Reply)
	requireWhole(t, long, parts)
	require.Equal(t, 1, w.Counts().Identified)

	w.Message(discordtest.Mention("And after that?"))
	require.Equal(t, "Yes.", w.wait(t, channel, 8)[7].Content)
	require.Positive(t, w.Counts().Beats)
}

// longAnswer has 9,000 characters of text and code.
func longAnswer() string {
	var b strings.Builder
	for i := 0; b.Len() < 3000; i++ {
		fmt.Fprintf(&b, "Paragraph %d has some words that say what is going on, and why.\n\n", i)
	}
	b.WriteString("```python\n")
	for i := 0; b.Len() < 7500; i++ {
		fmt.Fprintf(&b, "value_%d = compute(%d)\n", i, i)
	}
	b.WriteString("```\n\n")
	for i := 0; b.Len() < 8940; i++ {
		fmt.Fprintf(&b, "Line %d of what follows.\n", i)
	}
	return b.String() + strings.Repeat("x", 9000-b.Len())
}

// requireWhole checks that messages are a text in order, with code in fences.
func requireWhole(t *testing.T, text string, parts []discordtest.Sent) {
	t.Helper()
	require.Len(t, []rune(text), 9000)
	var lines []string
	for _, p := range parts {
		require.LessOrEqual(t, len([]rune(p.Content)), discordtest.MaxContent)
		require.Zero(t, strings.Count(p.Content, "```")%2, p.Content)
		if strings.Contains(p.Content, "value_") {
			require.Contains(t, p.Content, "```python\n")
		}
		lines = append(lines, strings.Split(p.Content, "\n")...)
	}
	content := func(lines []string) (out []string) {
		for _, l := range lines {
			if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, "```") {
				out = append(out, l)
			}
		}
		return out
	}
	require.Equal(t, content(strings.Split(text, "\n")), content(lines))
}

func TestBrokenConnections(t *testing.T) {
	for _, c := range []struct {
		desc   string
		broken func(*world)
		again  bool // that the bot identifies itself again
	}{
		{"the network breaks", func(w *world) { w.Drop() }, false},
		{"Discord asks for a new connection", func(w *world) { w.Reconnect() }, false},
		{"the session cannot be resumed", func(w *world) { w.Forget() }, true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := begin(t, nil, said("", "Still here."))
			c.broken(w)
			if c.again {
				require.Eventually(t, func() bool { return w.Counts().Identified == 2 }, patience, pause)
			}
			w.Message(discordtest.Mention("meanwhile"))
			require.Equal(t, "Still here.", w.wait(t, channel, 1)[0].Content)
			require.Equal(t, c.again, w.Counts().Identified == 2)
			require.Equal(t, !c.again, w.Counts().Resumed == 1)
		})
	}
}

func TestRateLimits(t *testing.T) {
	w := begin(t, nil, said("", strings.Repeat(strings.Repeat("x", 1500)+"\n\n", 3)))
	w.RateLimit(2)
	w.Message(discordtest.Mention("q"))
	w.wait(t, channel, 3)
	require.Equal(t, 2, w.Counts().Limited)
}
