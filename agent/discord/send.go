package discord

import (
	"context"
	"errors"
	"net/http"

	"github.com/bwmarrin/discordgo"
)

// sender sends one message to where something was asked.
type sender func(ctx context.Context, m message) error

// nobody is who is mentioned by a message, whatever it says.
func nobody() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

// replyTo answers a message; only the first answer refers to it.
func (b *Bot) replyTo(m *discordgo.Message) sender {
	missing := false // that the message is gone meanwhile is no error
	reference := &discordgo.MessageReference{MessageID: m.ID, ChannelID: m.ChannelID, GuildID: m.GuildID, FailIfNotExists: &missing}
	return func(ctx context.Context, out message) error {
		_, err := b.session.ChannelMessageSendComplex(m.ChannelID, &discordgo.MessageSend{
			Content: out.text, Files: filesOf(out), AllowedMentions: nobody(),
			Flags: discordgo.MessageFlagsSuppressEmbeds, Reference: reference,
		}, discordgo.WithContext(ctx))
		if err == nil {
			reference = nil
		}
		return err
	}
}

// followUp answers an interaction that was deferred: the first takes the place of the
// sign that the bot works.
func (b *Bot) followUp(i *discordgo.Interaction) sender {
	return func(ctx context.Context, out message) error {
		_, err := b.session.FollowupMessageCreate(i, true, &discordgo.WebhookParams{
			Content: out.text, Files: filesOf(out), AllowedMentions: nobody(),
			Flags: discordgo.MessageFlagsSuppressEmbeds,
		}, discordgo.WithContext(ctx))
		return err
	}
}

func filesOf(m message) (out []*discordgo.File) {
	for _, f := range m.files {
		out = append(out, f.file())
	}
	return out
}

// say sends a short text, also when ctx has ended.
func (b *Bot) say(ctx context.Context, to sender, text string) {
	limit := requestTime
	if ctx.Err() != nil {
		limit = farewellTime
	}
	ctx, cancel := withTime(ctx, limit)
	defer cancel()
	b.send(ctx, to, []message{{text: text}})
}

// send sends an answer, message by message. Files that Discord does not take become
// links.
func (b *Bot) send(ctx context.Context, to sender, all []message) {
	ctx, cancel := withTime(ctx, requestTime)
	defer cancel()
	for _, m := range all {
		err := to(ctx, m)
		if len(m.files) > 0 && isTooLarge(err) {
			err = b.sendLinks(ctx, to, m)
		}
		if err != nil {
			b.log.Warn("discord: a message was not sent", "error", err)
			return
		}
	}
}

func isTooLarge(err error) bool {
	var rest *discordgo.RESTError
	return errors.As(err, &rest) && rest.Response.StatusCode == http.StatusRequestEntityTooLarge
}

func (b *Bot) sendLinks(ctx context.Context, to sender, m message) error {
	text := ""
	for _, f := range m.files {
		if f.url == "" {
			text += quoted(f.name) + " is too large for Discord.\n"
			continue
		}
		text += "[" + plainName(f.name) + "](<" + f.url + ">) (" + size(int64(len(f.content))) + ")\n"
	}
	for _, part := range append(Split(m.text, maxContent), Split(text, maxContent)...) {
		if err := to(ctx, message{text: part}); err != nil {
			return err
		}
	}
	return nil
}
