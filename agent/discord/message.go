package discord

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"notebox/agent"
)

const (
	helpText  = "Ask me something: I write Python code, run it in a sandbox, and answer with what it gives. Attach files, and the code can read them. `/run` runs your own code."
	busyText  = "There are too many questions waiting in this channel. Please ask again when some are answered."
	filesOnly = "(The user gave files and no question. Look at them and say what they are, briefly.)"
)

// onMessage is called by discordgo for each message, one after the other. It does not
// block.
func (b *Bot) onMessage(ctx context.Context, m *discordgo.Message) {
	if ctx.Err() != nil || !b.isQuestion(m) || !b.access.allows(m.GuildID, m.Author.ID) || !b.heard.first(m.ID) {
		return
	}
	reply := b.replyTo(m)
	text := b.textOf(m)
	if text == "" && len(m.Attachments) == 0 {
		go b.say(ctx, reply, helpText)
		return
	}
	added := b.rooms.add(ctx, m.ChannelID, func(ctx context.Context, r *room) { b.answer(ctx, r, m, text, reply) })
	if !added {
		go b.say(ctx, reply, busyText)
	}
}

// isQuestion reports whether a message is for the bot. What other programs say never
// is: two bots would talk for ever.
func (b *Bot) isQuestion(m *discordgo.Message) bool {
	if m.Author == nil || m.Author.Bot || m.WebhookID != "" || m.Author.ID == b.id ||
		m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply {
		return false
	}
	if m.GuildID == "" || b.mentioned(m) {
		return true
	}
	return len(m.Mentions) == 0 && b.rooms.isThread(m.ChannelID) && (m.Content != "" || len(m.Attachments) > 0)
}

func (b *Bot) mentioned(m *discordgo.Message) bool {
	return slices.ContainsFunc(m.Mentions, func(u *discordgo.User) bool { return u.ID == b.id })
}

// textOf is what a message asks: without the bot's name, and with the names of others
// in the place of their ids.
func (b *Bot) textOf(m *discordgo.Message) string {
	names := []string{"<@" + b.id + ">", "", "<@!" + b.id + ">", ""}
	for _, u := range m.Mentions {
		names = append(names, "<@"+u.ID+">", "@"+u.Username, "<@!"+u.ID+">", "@"+u.Username)
	}
	return strings.TrimSpace(strings.NewReplacer(names...).Replace(m.Content))
}

// answer is the job of a question.
func (b *Bot) answer(ctx context.Context, r *room, m *discordgo.Message, text string, reply sender) {
	defer b.typing(ctx, m.ChannelID)()
	b.enter(ctx, r, m)
	files, refusal, err := b.attachments(ctx, m.Attachments)
	if refusal != "" {
		b.say(ctx, reply, refusal)
		return
	}
	if err == nil {
		text = cmp.Or(text, filesOnly)
		q := agent.Question{Text: text, Files: files}
		b.rooms.keep(r, sizeOf(files))
		var a *agent.Answer
		if a, err = b.rooms.conversation(r).Ask(ctx, q, nil); err == nil {
			b.send(ctx, reply, b.compose(ctx, r, a.Text, a.Images, a.Files))
			b.log.Info("discord: answered", "message", m.ID, "channel", m.ChannelID, "author", m.Author.ID, "runs", len(a.Steps),
				"stopped", string(a.Stopped), "tokens_in", a.Usage.In, "tokens_out", a.Usage.Out)
			return
		}
	}
	b.log.Warn("discord: a question has no answer", "message", m.ID, "channel", m.ChannelID, "error", err)
	b.say(ctx, reply, words(ctx, err))
}

func sizeOf(files []agent.File) (sum int64) {
	for _, f := range files {
		sum += f.Size
	}
	return sum
}

// enter finds out whether the channel is a thread, in which the bot is asked from now
// on without being named.
func (b *Bot) enter(ctx context.Context, r *room, m *discordgo.Message) {
	if !b.config.MessageContent || m.GuildID == "" || b.rooms.isThread(m.ChannelID) {
		return
	}
	c, err := b.session.State.Channel(m.ChannelID)
	if err != nil {
		c, err = b.session.Channel(m.ChannelID, discordgo.WithContext(ctx))
	}
	if err == nil && c.IsThread() {
		b.rooms.setThread(r)
	}
}

// typing shows that the bot works, until it is stopped.
func (b *Bot) typing(ctx context.Context, channel string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(typingPause)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := b.session.ChannelTyping(channel, discordgo.WithContext(ctx)); err != nil && ctx.Err() == nil {
				b.log.Debug("discord: typing", "channel", channel, "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return cancel
}
