package discord

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"notebox/agent"
	"notebox/agent/tool"
)

// The names of the command and of what it takes.
const (
	commandName = "run"
	codeOption  = "code"
	fileOption  = "file"
	// maxTyped is what Discord takes in a dialogue's field, in characters.
	maxTyped = 4000
)

const (
	notAllowed = "This bot does not answer here, or not to you. Who runs it says whom it answers."
	noCode     = "There is a file and no code: give both, `/run code: … file: …`."
)

// register makes the command known to Discord. Without it the bot still answers
// messages.
func (b *Bot) register(ctx context.Context, application string) {
	b.session.State.RLock()
	if a := b.session.State.Application; a != nil && a.ID != "" {
		application = a.ID
	}
	b.session.State.RUnlock()
	contexts := []discordgo.InteractionContextType{discordgo.InteractionContextGuild, discordgo.InteractionContextBotDM}
	_, err := b.session.ApplicationCommandCreate(application, "", &discordgo.ApplicationCommand{
		Name: commandName, Type: discordgo.ChatApplicationCommand, Contexts: &contexts,
		Description: "Run Python code in a sandbox",
		Options: []*discordgo.ApplicationCommandOption{
			{Type: discordgo.ApplicationCommandOptionString, Name: codeOption, Description: "the code; without it, a field with lines opens"},
			{Type: discordgo.ApplicationCommandOptionAttachment, Name: fileOption, Description: "a file for /mnt/data"},
		},
	}, discordgo.WithContext(ctx))
	if err != nil {
		b.log.Warn("discord: the command /run was not registered", "error", err)
	}
}

// onInteraction is called by discordgo, one after the other. It does not block: Discord
// waits three seconds for an answer.
func (b *Bot) onInteraction(ctx context.Context, i *discordgo.Interaction) {
	user := i.User
	if i.Member != nil {
		user = i.Member.User
	}
	if ctx.Err() != nil || user == nil || !b.heard.first(i.ID) {
		return
	}
	var code string
	var files []*discordgo.MessageAttachment
	switch data := i.Data.(type) {
	case discordgo.ApplicationCommandInteractionData:
		if data.Name != commandName {
			return
		}
		code, files = typed(data)
	case discordgo.ModalSubmitInteractionData:
		if data.CustomID != commandName {
			return
		}
		code = fieldOf(data.Components)
	default:
		return
	}
	switch {
	case !b.access.allows(i.GuildID, user.ID):
		go b.respond(ctx, i, hidden(notAllowed))
	case strings.TrimSpace(code) != "":
		go b.run(ctx, i, code, files)
	case len(files) > 0:
		go b.respond(ctx, i, hidden(noCode))
	default:
		go b.respond(ctx, i, dialogue)
	}
}

// typed is what was given with the command.
func typed(data discordgo.ApplicationCommandInteractionData) (code string, files []*discordgo.MessageAttachment) {
	for _, o := range data.Options {
		value, ok := o.Value.(string)
		switch {
		case !ok:
		case o.Name == codeOption:
			code = value
		case o.Name == fileOption && data.Resolved != nil && data.Resolved.Attachments[value] != nil:
			files = append(files, data.Resolved.Attachments[value])
		}
	}
	return code, files
}

// dialogue asks for code, with lines.
var dialogue = &discordgo.InteractionResponse{
	Type: discordgo.InteractionResponseModal,
	Data: &discordgo.InteractionResponseData{
		CustomID: commandName, Title: "Run Python code",
		Components: []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{
			discordgo.TextInput{CustomID: codeOption, Label: "Code", Style: discordgo.TextInputParagraph, Required: true, MaxLength: maxTyped},
		}}},
	},
}

// fieldOf is what was written in the dialogue.
func fieldOf(components []discordgo.MessageComponent) string {
	for _, c := range components {
		switch c := c.(type) {
		case *discordgo.ActionsRow:
			if text := fieldOf(c.Components); text != "" {
				return text
			}
		case *discordgo.TextInput:
			return c.Value
		}
	}
	return ""
}

// hidden is a text for the user of a command alone.
func hidden(text string) *discordgo.InteractionResponse {
	return &discordgo.InteractionResponse{
		Type: discordgo.InteractionResponseChannelMessageWithSource,
		Data: &discordgo.InteractionResponseData{Content: text, Flags: discordgo.MessageFlagsEphemeral, AllowedMentions: nobody()},
	}
}

func (b *Bot) respond(ctx context.Context, i *discordgo.Interaction, r *discordgo.InteractionResponse) bool {
	err := b.session.InteractionRespond(i, r, discordgo.WithContext(ctx))
	if err != nil {
		b.log.Warn("discord: a command was not answered", "interaction", i.ID, "error", err)
	}
	return err == nil
}

// run takes code on.
func (b *Bot) run(ctx context.Context, i *discordgo.Interaction, code string, files []*discordgo.MessageAttachment) {
	until := time.Now().Add(runTime)
	if !b.respond(ctx, i, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource}) {
		return
	}
	reply := b.followUp(i)
	added := b.rooms.add(ctx, i.ChannelID, func(ctx context.Context, r *room) {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		b.execute(ctx, r, i, code, files, reply)
	})
	if !added {
		b.say(ctx, reply, busyText)
	}
}

// execute is the job of a program. It is no part of the channel's conversation.
func (b *Bot) execute(ctx context.Context, r *room, i *discordgo.Interaction, code string, attachments []*discordgo.MessageAttachment, reply sender) {
	files, refusal, err := b.attachments(ctx, attachments)
	if refusal != "" {
		b.say(ctx, reply, refusal)
		return
	}
	code = program(code)
	var result *tool.Result
	if err == nil {
		result, err = b.config.Executor.Execute(ctx, agent.Run{Language: "python", Code: code, Files: files})
	}
	if err != nil {
		b.log.Warn("discord: code was not run", "interaction", i.ID, "channel", i.ChannelID, "error", err)
		b.say(ctx, reply, words(ctx, err))
		return
	}
	b.log.Info("discord: ran", "interaction", i.ID, "channel", i.ChannelID, "status", result.Status)
	said := body{
		text:  func(*links, map[string]bool) string { return shown(code, result) },
		most:  maxOutputMessages,
		whole: attached{name: "output.txt", mediaType: "text/plain", content: []byte(result.Text)},
	}
	b.send(ctx, reply, b.composeBody(ctx, r, said, result.Images, result.Files))
}

// inFence is code as people write it in chats.
var inFence = regexp.MustCompile("^\\s*```(?:[A-Za-z0-9_+.#-]*\n)?([\\s\\S]*?)\n?```\\s*$")

// program is code without its fence.
func program(code string) string {
	if m := inFence.FindStringSubmatch(code); m != nil {
		return m[1]
	}
	return code
}

// shown is code, if it is short, with what became of it.
func shown(code string, r *tool.Result) string {
	var out []string
	if len(code) <= maxContent/2 {
		out = append(out, fenced("python", strings.TrimRight(code, "\n")))
	}
	if text := outputOf(r); text != "" {
		out = append(out, fenced("", text))
	} else if r.Status == "ok" {
		out = append(out, "It ran, and printed nothing.")
	}
	if r.Status != "ok" {
		out = append(out, fmt.Sprintf("It ended with %s.", quoted(r.Status)))
	}
	return strings.Join(out, "\n")
}

// outputOf is a result's text without the lines that name images and files, which are
// attached.
func outputOf(r *tool.Result) string {
	var lines []string
	for _, line := range strings.Split(r.Text, "\n") {
		named := false
		for _, i := range r.Images {
			named = named || i.URL != "" && strings.Contains(line, i.URL)
		}
		for _, f := range r.Files {
			named = named || f.URL != "" && strings.Contains(line, f.URL)
		}
		if !named {
			lines = append(lines, line)
		}
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
