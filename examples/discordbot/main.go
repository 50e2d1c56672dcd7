// Command discordbot is a bot on Discord that answers by running code: a model, a
// notebox, and package discord between them. It is notebox discord with no flags, to be
// copied and changed.
//
//	DISCORD_TOKEN=… DISCORD_GUILD=… OPENAI_API_KEY=… go run ./examples/discordbot
//
// DISCORD_GUILD is the id of the guild in which everybody may ask. NOTEBOX_URL and
// NOTEBOX_API_KEY say where notebox is; the variables of package provider which model
// is asked. docs/discord.md says how the bot is set up.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"notebox/agent"
	"notebox/agent/discord"
	"notebox/agent/provider"
	"notebox/agent/remote"
	"notebox/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	settings, err := provider.FromEnvironment(provider.Settings{Model: os.Getenv("MODEL")}, os.Getenv)
	if err != nil {
		return err
	}
	model, err := provider.Open(settings)
	if err != nil {
		return err
	}
	notebox := remote.New(client.Options{
		BaseURL: cmp.Or(os.Getenv("NOTEBOX_URL"), "http://127.0.0.1:8080"),
		Key:     os.Getenv("NOTEBOX_API_KEY"),
	})
	helper, err := agent.New(agent.Config{
		Code:     agent.Mind{Provider: model, Prompt: "You are in a chat on Discord: keep answers short."},
		Executor: notebox,
		Limits:   agent.Limits{Time: 5 * time.Minute, Questions: 20, Files: 64 << 20},
	})
	if err != nil {
		return err
	}
	bot, err := discord.New(discord.Config{
		Token:    os.Getenv("DISCORD_TOKEN"),
		Guilds:   []string{os.Getenv("DISCORD_GUILD")},
		Agent:    helper,
		Executor: notebox,                  // of the command /run
		API:      os.Getenv("DISCORD_API"), // of a proxy, if there is one
	})
	if err != nil {
		return err
	}
	return bot.Run(ctx)
}
