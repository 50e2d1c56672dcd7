package discord_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/discord"
	"notebox/agent/discord/discordtest"
)

func attach(w *world, count, bytes int) discordgo.Message {
	m := discordtest.Mention("with files")
	for range count {
		m.Attachments = append(m.Attachments, w.Attach("a.csv", []byte(strings.Repeat("x", bytes))))
	}
	return m
}

func TestAttachments(t *testing.T) {
	small := func(c *discord.Config) { c.Limits.Attachment, c.Limits.Attachments = 1000, 3 }
	for _, c := range []struct {
		desc    string
		message func(w *world) discordgo.Message
		want    string
		files   []string
	}{
		{"three of one name", func(w *world) discordgo.Message { return attach(w, 3, 10) }, "ok", []string{"a.csv", "a-2.csv", "a-3.csv"}},
		{"too many", func(w *world) discordgo.Message { return attach(w, 4, 10) }, "I take 3 files at a time; these are 4.", nil},
		{"too large", func(w *world) discordgo.Message { return attach(w, 1, 1001) }, "`a.csv` is too large: I take files of at most 1000 bytes.", nil},
		{"larger than it says", func(w *world) discordgo.Message {
			m := attach(w, 1, 1001)
			m.Attachments[0].Size = 5
			return m
		}, "I could not get `a.csv` from Discord. Please attach it again.", nil},
		{"of another host", func(w *world) discordgo.Message {
			m := attach(w, 1, 5)
			m.Attachments[0].URL = w.sandbox.files.URL + "/chart.png"
			return m
		}, "I could not get `a.csv` from Discord. Please attach it again.", nil},
		{"of a host that looks like Discord's", func(w *world) discordgo.Message {
			m := attach(w, 1, 5)
			m.Attachments[0].URL = strings.Replace(w.URL(), "://", "://"+strings.TrimPrefix(w.URL(), "http://")+"@", 1) + "/x"
			return m
		}, "I could not get `a.csv` from Discord. Please attach it again.", nil},
		{"a name with folders", func(w *world) discordgo.Message {
			m := attach(w, 1, 5)
			m.Attachments[0].Filename = "../../etc/.pass`wd"
			return m
		}, "ok", []string{"pass_wd"}},
		{"files and no question", func(w *world) discordgo.Message {
			m := attach(w, 1, 5)
			m.Content = "<@" + discordtest.BotID + ">"
			return m
		}, "ok", []string{"a.csv"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := begin(t, small, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: python("1")}, {Text: "ok"}}})
			w.Message(c.message(w))
			require.Equal(t, c.want, w.wait(t, channel, 1)[0].Content)
			var names []string
			for _, r := range w.sandbox.runs {
				for _, f := range r.Files {
					names = append(names, f.Name)
				}
			}
			require.Equal(t, c.files, names)
		})
	}
}

func TestFilesThatAreNotAttached(t *testing.T) {
	w := begin(t, nil,
		agenttest.Dialogue{Question: "big", Turns: []agenttest.Turn{{Calls: python("big")}, {Text: "See [it](sandbox:/mnt/data/big.bin) and <https://evil.example/>, @everyone."}}},
		agenttest.Dialogue{Question: "refused", Turns: []agenttest.Turn{{Calls: python("plot")}, {Text: "A chart."}}},
		agenttest.Dialogue{Question: "endless", Turns: []agenttest.Turn{{Text: strings.Repeat(strings.Repeat("x", 1500)+"\n\n", 20)}}},
	)
	w.Message(discordtest.Mention("big"))
	url := w.sandbox.files.URL
	content := w.wait(t, channel, 1)[0].Content
	require.Equal(t, "See [it](<"+url+"/big.bin>) and `https:\u200b//evil.example/`, @everyone.\n"+
		"[gone.txt](<"+url+"/gone.txt>)\n`lost.txt` was not kept: `too many files`", content)

	w.TooLarge(1)
	w.Message(discordtest.Mention("refused"))
	sent := w.wait(t, channel, 3)
	require.Equal(t, "A chart.", sent[1].Content)
	require.Contains(t, sent[2].Content, "[image_0.png](<"+url+"/chart.png>)")

	w.Message(discordtest.Mention("endless"))
	sent = w.wait(t, channel, 3+discord.DefaultLimits().Messages)
	last := sent[len(sent)-1]
	require.Contains(t, last.Content, "`answer.md`")
	require.Len(t, last.Files, 1)
	require.Greater(t, len(last.Files[0].Content), 30_000)
}

func TestRunCommand(t *testing.T) {
	w := begin(t, nil)
	command := w.Commands()[0]
	require.Equal(t, "run", command.Name)
	require.Len(t, command.Options, 2)
	code := func(text string) map[string]any {
		return map[string]any{"id": "1", "name": "run", "type": 1, "options": []any{map[string]any{"name": "code", "type": 3, "value": text}}}
	}

	id := w.Interact(2, discordtest.Guild, code("```py\nx = \"hello\"\n```"))
	require.Equal(t, "```python\nx = \"hello\"\n```\n```\nran x = \"hello\"\n```", w.wait(t, id, 1)[0].Content)
	require.Equal(t, 5, w.Responses(id)[0].Type)

	id = w.Interact(2, "", code("raise it")) // in a direct message
	content := w.wait(t, id, 1)[0].Content
	require.Equal(t, "```python\nraise it\n```\n```\nValueError: @everyone ``\u200b` https://evil.example/x\n```\nIt ended with `error`.", content)

	id = w.Interact(2, discordtest.Guild, code("plot"))
	require.Equal(t, chart, w.wait(t, id, 1)[0].Files[0].Content)

	id = w.Interact(2, discordtest.Guild, code("much"))
	sent := w.wait(t, id, 3)
	require.Len(t, sent[2].Files[0].Content, 2000*len("a line of output\n"))

	file := w.Attach("in.csv", []byte("1,2"))
	data := code("open it")
	data["options"] = append(data["options"].([]any), map[string]any{"name": "file", "type": 11, "value": file.ID})
	data["resolved"] = map[string]any{"attachments": map[string]any{file.ID: file}}
	w.wait(t, w.Interact(2, discordtest.Guild, data), 1)
	require.Equal(t, map[string]string{"in.csv": "1,2"}, w.sandbox.content)

	id = w.Interact(2, discordtest.Guild, map[string]any{"id": "1", "name": "run", "type": 1})
	require.Eventually(t, func() bool { return len(w.Responses(id)) == 1 }, patience, pause)
	require.Equal(t, 9, w.Responses(id)[0].Type)
	id = w.Interact(5, discordtest.Guild, map[string]any{"custom_id": w.Responses(id)[0].CustomID, "components": []any{
		map[string]any{"type": 1, "components": []any{map[string]any{"type": 4, "custom_id": "code", "value": "a\nb"}}},
	}})
	require.Contains(t, w.wait(t, id, 1)[0].Content, "ran a\nb")

	id = w.Interact(2, "1", code("1"))
	require.Eventually(t, func() bool { return len(w.Responses(id)) == 1 }, patience, pause)
	require.Equal(t, discordgo.MessageFlagsEphemeral, w.Responses(id)[0].Flags)
	require.Contains(t, w.Responses(id)[0].Content, "does not answer here")
	require.Empty(t, w.Sent(id))
}

func TestThreads(t *testing.T) {
	w := begin(t, func(c *discord.Config) { c.MessageContent = true }, said("first", "One."), said("second", "Two."))
	w.Thread("800", channel)
	in := func(text string, mentions ...*discordgo.User) discordgo.Message {
		return discordgo.Message{ChannelID: "800", GuildID: discordtest.Guild, Content: text, Mentions: mentions}
	}
	w.Message(in("second, to nobody"))
	m := discordtest.Mention("first")
	m.ChannelID = "800"
	w.Message(m)
	require.Equal(t, "One.", w.wait(t, "800", 1)[0].Content)
	w.Message(in("second, to somebody else", &discordgo.User{ID: "501", Username: "ben"}))
	w.Message(in("second"))
	require.Equal(t, "Two.", w.wait(t, "800", 2)[1].Content)
	w.Message(discordgo.Message{GuildID: discordtest.Guild, Content: "second, in a channel that is no thread"})
	w.stop()
	require.Len(t, w.Sent("800"), 2)
	require.Empty(t, w.Sent(channel))
}

// TestHistories are one for each channel, and bounded.
func TestHistories(t *testing.T) {
	w := begin(t, func(c *discord.Config) { c.Limits.Channels = 1 },
		agenttest.Dialogue{Question: "remember", Turns: []agenttest.Turn{{Text: "Noted."}}},
		agenttest.Dialogue{Question: "known", Turns: []agenttest.Turn{{Text: "Yes.", Expect: []string{"remember 42"}}}},
		agenttest.Dialogue{Question: "elsewhere", Turns: []agenttest.Turn{{Text: "No.", Absent: []string{"remember 42"}}}},
		agenttest.Dialogue{Question: "forgotten", Turns: []agenttest.Turn{{Text: "No.", Absent: []string{"remember 42"}}}},
	)
	at := func(where, text string) {
		m := discordtest.Mention(text)
		m.ChannelID = where
		before := len(w.Sent(where))
		w.Message(m)
		w.wait(t, where, before+1)
	}
	at("1", "remember 42")
	at("1", "is it known?")
	at("2", "and elsewhere?")
	at("3", "one more, elsewhere")
	at("1", "is it forgotten?") // as there is room for one channel
}

// TestQueues are one for each channel, and a bound for all.
func TestQueues(t *testing.T) {
	w := begin(t, func(c *discord.Config) { c.Limits.AtOnce, c.Limits.Waiting = 2, 2 },
		agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: python("wait")}, {Text: "Done."}}})
	for i := range 3 {
		for range 3 {
			m := discordtest.Mention("wait")
			m.ChannelID = fmt.Sprint(i + 1)
			w.Message(m)
		}
	}
	m := discordtest.Mention("too much")
	m.ChannelID = "1"
	w.Message(m)
	require.Contains(t, w.wait(t, "1", 1)[0].Content, "too many questions waiting")
	close(w.sandbox.hold)
	w.wait(t, "1", 4)
	w.wait(t, "2", 3)
	w.wait(t, "3", 3)
	require.Equal(t, 2, w.sandbox.most)
}

func TestTheEnd(t *testing.T) {
	w := begin(t, nil, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: python("wait")}, {Text: "Done."}}})
	w.Message(discordtest.Mention("one"))
	w.Message(discordtest.Mention("two"))
	help := discordtest.Mention(" ")
	help.ChannelID = "1"
	w.Message(help)
	w.wait(t, "1", 1) // events come in order: the bot has both questions by now
	require.Eventually(t, func() bool { w.sandbox.mu.Lock(); defer w.sandbox.mu.Unlock(); return w.sandbox.working == 1 }, patience, pause)
	w.stop()
	for _, m := range w.wait(t, channel, 2) {
		require.Equal(t, "I have to stop now and could not answer. Please ask again in a minute.", m.Content)
	}
}

func TestErrorsInWords(t *testing.T) {
	for _, c := range []struct {
		desc   string
		faults []agenttest.Fault
		want   string
	}{
		{"the key is wrong", []agenttest.Fault{{Status: 401, Message: "Incorrect API key provided: sk-secret"}}, "I could not answer: the model's provider does not accept the service's key. Who runs this bot has to look at it."},
		{"the model is overloaded", many(agenttest.Fault{Status: 503}), "I could not answer: the model's provider answered with status 503. Please ask again in a minute."},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := begin(t, nil, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "x", Faults: c.faults}}})
			w.Message(discordtest.Mention("q"))
			require.Equal(t, c.want, w.wait(t, channel, 1)[0].Content)
		})
	}
	w := begin(t, nil)
	w.Message(discordtest.Mention(" "))
	require.Contains(t, w.wait(t, channel, 1)[0].Content, "Ask me something")
}

func many(f agenttest.Fault) (out []agenttest.Fault) {
	for range 20 {
		out = append(out, f)
	}
	return out
}

var _ agent.Executor = (*sandbox)(nil)
