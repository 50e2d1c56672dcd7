package protocols

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/agent/discord/discordtest"
	"notebox/tests/starter"
)

const drawRides = `import pandas as pd
import matplotlib.pyplot as plt

data = pd.read_csv("/mnt/data/rides.csv")
print("sum", data["rides"].sum())
data.plot.bar(x="day", y="rides")
plt.tight_layout()
plt.show()
`

// longAnswer is of 9,000 characters, with a block of code that no message holds.
func longAnswer() string {
	var b strings.Builder
	for i := 0; b.Len() < 3500; i++ {
		fmt.Fprintf(&b, "Paragraph %d says what was done with the rides.\n\n", i)
	}
	b.WriteString("```python\n")
	for i := 0; b.Len() < 8900; i++ {
		fmt.Fprintf(&b, "rides[%d] = read(%d)\n", i, i)
	}
	b.WriteString("```\n")
	return b.String() + strings.Repeat("x", 9000-b.Len())
}

// discordBot starts notebox discord.
func discordBot(t *testing.T, env []string, flags ...string) *starter.Process {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	cmd := exec.Command(program, append([]string{"discord"}, flags...)...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	p, err := starter.Run(cmd, t.TempDir())
	require.NoError(t, err)
	return p
}

// TestDiscordDialogue is a talk on Discord: a file in and a chart out, an answer of
// 9,000 characters, and a connection that breaks in the middle. The model and Discord are
// scripts on loopback; the bot, its client of Discord, and the sandboxes are real.
func TestDiscordDialogue(t *testing.T) {
	t.Parallel()
	long := longAnswer()
	model := agenttest.New(t,
		agenttest.Dialogue{Question: "Draw the rides", Turns: []agenttest.Turn{
			{Calls: python(drawRides), Expect: []string{"/mnt/data/rides.csv", "day,rides"}},
			{Text: "There were **{{tool:sum (\\d+)}}** rides, not [these](https://elsewhere.example/x)."},
		}},
		agenttest.Dialogue{Question: "at length", Turns: []agenttest.Turn{{Text: long, Expect: []string{"There were **42** rides"}}}},
	)
	server := discordtest.New(t)
	bot := discordBot(t, append(modelVariables(model), "DISCORD_TOKEN="+discordtest.Token, "NOTEBOX_DISCORD_GUILDS="+discordtest.Guild),
		"-url", shared.URL, "-model", "scripted", "-discord-api", server.URL(), "-discord-cdn", server.URL())
	defer func() { require.NoError(t, bot.Stop(context.Background())) }()
	require.Eventually(t, func() bool { return len(server.Commands()) == 1 }, dialogueTime, waitPause)

	question := discordtest.Mention("Draw the rides")
	question.Attachments = []*discordgo.MessageAttachment{server.Attach("rides.csv", []byte("day,rides\nMon,12\nTue,30\n"))}
	server.Message(question)
	sent := awaitSent(t, server, "700", 1)
	require.Equal(t, "There were **42** rides, not these (`https:\u200b//elsewhere.example/x`).", sent[0].Content)
	require.Len(t, sent[0].Files, 1)
	picture, err := png.Decode(bytes.NewReader(sent[0].Files[0].Content))
	require.NoError(t, err)
	require.Greater(t, picture.Bounds().Dx(), 300)
	require.NotZero(t, server.Typing("700"))

	server.WhenTyping(server.Drop)
	asked := server.Message(discordtest.Mention("Explain at length"))
	require.Eventually(t, func() bool { return server.Counts().Resumed == 1 }, dialogueTime, waitPause)
	server.Again("MESSAGE_CREATE")
	require.Eventually(t, func() bool {
		all := server.Sent("700")
		return strings.HasSuffix(all[len(all)-1].Content, "xxx")
	}, dialogueTime, waitPause)
	var lines []string
	for i, m := range server.Sent("700")[1:] {
		require.Equal(t, i == 0, m.Reply == asked)
		require.LessOrEqual(t, len([]rune(m.Content)), discordtest.MaxContent)
		require.Zero(t, strings.Count(m.Content, "```")%2)
		require.JSONEq(t, `{"parse":[],"replied_user":false}`, m.Mentions)
		lines = append(lines, textLines(m.Content)...)
	}
	require.Equal(t, textLines(long), lines)

	id := server.Interact(2, discordtest.Guild, map[string]any{"id": "1", "name": "run", "type": 1, "options": []any{
		map[string]any{"name": "code", "type": 3, "value": "print(6*7); print('@everyone'); 1/0"},
	}})
	ran := awaitSent(t, server, id, 1)[0]
	require.Contains(t, ran.Content, "42\n@everyone\n")
	require.Contains(t, ran.Content, "ZeroDivisionError")
	require.Contains(t, ran.Content, "It ended with `error`.")
	require.Equal(t, 1, server.Counts().Identified)
}

const waitPause = 50 * time.Millisecond

func awaitSent(t *testing.T, server *discordtest.Server, where string, count int) []discordtest.Sent {
	t.Helper()
	require.Eventually(t, func() bool { return len(server.Sent(where)) >= count }, dialogueTime, waitPause)
	return server.Sent(where)
}

// textLines are the lines of a text but for fences and blank ones.
func textLines(text string) (out []string) {
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, "```") {
			out = append(out, l)
		}
	}
	return out
}

// TestDiscordExample runs the program that people copy, as it is.
func TestDiscordExample(t *testing.T) {
	t.Parallel()
	model := agenttest.New(t, agenttest.Dialogue{Question: "sum", Turns: []agenttest.Turn{
		{Calls: python("print(sum(range(1, 101)))"), Expect: []string{"a chat on Discord"}},
		{Text: "It is {{tool:(\\d+)}}."},
	}})
	server := discordtest.New(t)
	program := filepath.Join(t.TempDir(), "discordbot")
	out, err := exec.Command("go", "build", "-o", program, "../../../examples/discordbot").CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx, cancel := context.WithTimeout(context.Background(), exampleTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "DISCORD_TOKEN="+discordtest.Token, "DISCORD_GUILD="+discordtest.Guild, "DISCORD_API="+server.URL(),
		"OPENAI_BASE_URL="+model.URL(), "OPENAI_API_KEY=key", "MODEL=script", "NOTEBOX_URL="+shared.URL, "NOTEBOX_API_KEY=")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(server.Commands()) == 1 }, exampleTime, waitPause)
	server.Message(discordtest.Mention("What is the sum from 1 to 100?"))
	require.Equal(t, "It is 5050.", awaitSent(t, server, "700", 1)[0].Content)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}

func TestDiscordStart(t *testing.T) {
	t.Parallel()
	model := agenttest.New(t)
	server := discordtest.New(t)
	whole := map[string]string{
		"DISCORD_TOKEN": discordtest.Token, "NOTEBOX_DISCORD_USERS": "500", "OPENAI_API_KEY": "key", "OPENAI_BASE_URL": model.URL(),
	}
	for _, c := range []struct{ desc, name, value, want string }{
		{"no token", "DISCORD_TOKEN", "", "DISCORD_TOKEN is not set"},
		{"another token", "DISCORD_TOKEN", "x", "the token is not accepted"},
		{"nobody allowed", "NOTEBOX_DISCORD_USERS", "", "nobody is allowed"},
		{"a name for an id", "NOTEBOX_DISCORD_USERS", "anna", "an id is a number"},
		{"no notebox", "url", "http://127.0.0.1:1", "is it running"},
		{"no model", "OPENAI_BASE_URL", "", "no model is configured"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			variables := map[string]string{"url": shared.URL}
			env := modelVariables(nil)
			for name, value := range whole {
				variables[name] = value
			}
			variables[c.name] = c.value
			if c.name == "OPENAI_BASE_URL" {
				variables["OPENAI_API_KEY"] = ""
			}
			for name, value := range variables {
				env = append(env, name+"="+value)
			}
			bot := discordBot(t, env, "-url", variables["url"], "-discord-api", server.URL())
			select {
			case <-bot.Ended():
				require.NotZero(t, bot.ExitCode())
			case <-time.After(time.Minute):
				require.NoError(t, bot.Stop(context.Background()), "the bot began")
			}
			require.Contains(t, bot.Logged(), c.want)
		})
	}
}
