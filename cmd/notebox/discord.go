package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/peterbourgon/ff/v3"
	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/agent"
	"notebox/agent/discord"
)

const discordHelp = `A bot on Discord: a model writes Python, a notebox at -url runs it, and the answer
comes with its images and files. docs/discord.md says how to set it up.

DISCORD_TOKEN is the bot's token. Nobody is answered by default: in a guild that is
among -discord-guilds everybody is, or where -discord-users are named, they; direct
messages are answered of -discord-users alone.

The model is found by the variables of its provider: OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, or CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID. All these
variables, and the names of guilds and users, are also looked up in .env. Each flag is
an environment variable as well: -url is NOTEBOX_URL, -discord-guilds
NOTEBOX_DISCORD_GUILDS.`

// discordFiles bounds the attachments that one channel's conversation keeps, in bytes:
// two of the largest.
const discordFiles = 64 << 20

// discordBot are the flags of notebox discord.
type discordBot struct {
	elsewhere
	guilds, users list
	content       bool
	uploadLimit   size
	atOnce        int
	sessions      bool
	api           string
	cdn           list
	model         modelSettings
	limits        agent.Limits
}

func (d *discordBot) register(f *flag.FlagSet) groups {
	var g groups
	g.add("What most people set", func(f *flag.FlagSet) {
		d.elsewhere.register(f)
		f.Var(&d.guilds, "discord-guilds", "Answer in the guilds with these `ids`, with commas between them.")
		f.Var(&d.users, "discord-users", "Answer the users with these `ids` alone, with commas between them, in those guilds and in direct messages. (default: everybody in the guilds, and no direct messages)")
		f.BoolVar(&d.sessions, "sessions", false, "Keep variables between the questions of a channel, if notebox offers sessions: each channel has a sandbox.")
	})
	g.add("The model that writes the code", func(f *flag.FlagSet) { d.model.register(f, "model", "write the code") })
	g.add("Limits of one question", func(f *flag.FlagSet) {
		d.limits = agent.DefaultLimits()
		registerLimits(f, &d.limits)
	})
	g.add("Discord", func(f *flag.FlagSet) {
		d.uploadLimit = discord.DefaultUploadLimit
		f.BoolVar(&d.content, "discord-message-content", false, "Hear messages in threads that do not mention the bot; Discord asks for the intent of that name.")
		f.Var(&d.uploadLimit, "discord-upload-limit", "Send a file of more than this `size` as a link; Discord takes more than the default in boosted guilds.")
		f.IntVar(&d.atOnce, "discord-at-once", discord.DefaultLimits().AtOnce, "Answer at most this `number` of questions at one time.")
		f.StringVar(&d.api, "discord-api", "", "Reach Discord's API through a proxy at this `URL`. (default: Discord itself)")
		f.Var(&d.cdn, "discord-cdn", "Take attachments from these `hosts` alone, with commas between them. (default: Discord's)")
	})
	return g.into(f)
}

func discordCommand() *ffcli.Command {
	var d discordBot
	flags := flag.NewFlagSet("notebox discord", flag.ContinueOnError)
	groups := d.register(flags)
	return &ffcli.Command{
		Name:       "discord",
		ShortUsage: "notebox discord [flags]",
		ShortHelp:  "answer questions on Discord, by code that a model writes",
		LongHelp:   discordHelp,
		UsageFunc:  groups.usage,
		FlagSet:    flags,
		Options:    []ff.Option{ff.WithEnvVarPrefix("NOTEBOX")},
		Exec: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			return d.run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
}

// run answers until ctx ends.
func (d *discordBot) run(ctx context.Context, log *slog.Logger) error {
	u, err := d.parse()
	if err != nil {
		return err
	}
	getenv, err := withFile(os.Getenv, dotenv)
	if err != nil {
		return err
	}
	token := getenv("DISCORD_TOKEN")
	if token == "" {
		return errors.New("DISCORD_TOKEN is not set: it is the token of the bot")
	}
	if len(d.guilds) == 0 && len(d.users) == 0 {
		_ = d.guilds.Set(getenv("NOTEBOX_DISCORD_GUILDS")) // of a list: cannot fail
		_ = d.users.Set(getenv("NOTEBOX_DISCORD_USERS"))
	}
	model, settings, err := d.model.open(getenv)
	if err != nil {
		return err
	}
	notebox, about, sessions, err := d.reach(ctx, func(err error) error {
		return fmt.Errorf("%w; is it running at %s? notebox serve starts one, and -url or NOTEBOX_URL names another", err, d.url)
	})
	if err != nil {
		return err
	}
	d.limits.Files = discordFiles
	a, err := agent.New(agent.Config{
		Code: agent.Mind{Provider: model}, Executor: notebox, About: about, Sessions: sessions && d.sessions, Limits: d.limits,
	})
	if err != nil {
		return err
	}
	bot, err := discord.New(discord.Config{
		Token: token, Agent: a, Executor: notebox, Guilds: d.guilds, Users: d.users,
		MessageContent: d.content, UploadLimit: int64(d.uploadLimit), Limits: discord.Limits{AtOnce: d.atOnce},
		API: d.api, CDN: d.cdn, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("discord: a model answers", "model", settings.Model, "api", string(settings.API), "notebox", u.Host)
	return bot.Run(ctx)
}
