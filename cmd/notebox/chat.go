package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
	"github.com/peterbourgon/ff/v3/ffcli"
	"golang.org/x/term"

	"notebox/agent"
	"notebox/agent/console"
	"notebox/terminal"
)

const chatHelp = `Asks questions in your own words: a model writes Python, a notebox at -url runs it,
and the answer comes with its images and files. Without a question there is a prompt;
a question that is piped in, or is an argument, is answered as plain text.

The model is found by the variables of its provider, also from .env: OPENAI_API_KEY,
OPENAI_BASE_URL, ANTHROPIC_API_KEY, or CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID.
Each flag is also an environment variable: -url is NOTEBOX_URL, -api-key
NOTEBOX_API_KEY.

The exit status is 0 with an answer, 1 without one, 3 with one that a limit cut short,
and 130 where it was interrupted.`

const (
	// maxQuestion bounds a question that is piped in, in bytes.
	maxQuestion = 256 << 10
)

// Exit statuses of notebox chat.
const (
	exitStopped     = 3
	exitInterrupted = 130
)

// exitError ends the program with a status of its own.
type exitError struct {
	status int
	error
}

func (e exitError) Unwrap() error { return e.error }

// chat are the flags of notebox chat.
type chat struct {
	elsewhere
	dir             string
	images, history string
	sessions        bool
	model, file     modelSettings
	limits          agent.Limits
}

func (c *chat) register(f *flag.FlagSet) groups {
	var g groups
	g.add("What most people set", func(f *flag.FlagSet) {
		c.elsewhere.register(f)
		f.StringVar(&c.dir, "dir", "", "Let the file agent read this `folder` and hand over its files.")
	})
	g.add("Console", func(f *flag.FlagSet) {
		f.StringVar(&c.images, "images", "auto", "Give the terminal images in this `way`: auto, kitty, iterm2, sixel or off.")
		f.StringVar(&c.history, "history", "", "Keep earlier lines in this `file`; an empty name keeps none. (default: $XDG_STATE_HOME/notebox/chat-history)")
		c.history = filepath.Join(xdg.StateHome, "notebox", "chat-history")
		f.BoolVar(&c.sessions, "sessions", true, "Keep variables and files between questions, if notebox offers sessions.")
	})
	g.add("The model that writes the code", func(f *flag.FlagSet) { c.model.register(f, "model", "write the code") })
	g.add("The model that reads files, by default the same", func(f *flag.FlagSet) { c.file.register(f, "file-model", "read the folder of -dir") })
	g.add("Limits of one question", func(f *flag.FlagSet) {
		c.limits = agent.DefaultLimits()
		registerLimits(f, &c.limits)
	})
	return g.into(f)
}

func chatCommand() *ffcli.Command {
	var c chat
	flags := flag.NewFlagSet("notebox chat", flag.ContinueOnError)
	groups := c.register(flags)
	return &ffcli.Command{
		Name:       "chat",
		ShortUsage: "notebox chat [flags] [question]",
		ShortHelp:  "answer questions in a console, by code that a model writes",
		LongHelp:   chatHelp,
		UsageFunc:  groups.usage,
		FlagSet:    flags,
		Options:    variableOptions(),
		Exec: func(ctx context.Context, args []string) error {
			return c.run(ctx, strings.Join(args, " "), os.Stdin, os.Stdout)
		},
	}
}

// run answers a question, or all that are asked at a prompt.
func (c *chat) run(ctx context.Context, question string, in, out *os.File) error {
	a, greeting, err := c.agent(ctx)
	if err != nil {
		return err
	}
	interrupts, stop := interrupts()
	defer stop()

	shown := term.IsTerminal(int(out.Fd()))
	prompts := question == "" && shown && term.IsTerminal(int(in.Fd()))
	o := console.Options{
		Agent: a, Out: out, Interrupts: interrupts, Greeting: greeting,
		Plain:   plainTerminal(),
		Theme:   terminal.Theme{Light: terminal.IsLight(os.Getenv)},
		Columns: func() int { return columnsOf(out) },
	}
	if !isWay(c.images) {
		return fmt.Errorf("-images is auto, kitty, iterm2, sixel or off, not %q", c.images)
	}
	o.Pictures = pictures(c.images, in, out, o.Plain)
	talk := console.New(o)
	defer talk.Close() // its session ends by itself in any case
	if prompts {
		return c.prompt(ctx, talk)
	}
	if question == "" {
		raw, err := io.ReadAll(io.LimitReader(in, maxQuestion+1))
		if err != nil {
			return fmt.Errorf("read the question: %w", err)
		}
		if len(raw) > maxQuestion {
			return fmt.Errorf("the question is longer than %d bytes; a file can be given with -dir", maxQuestion)
		}
		question = string(raw)
	}
	return exitOf(talk.Once(ctx, question, shown))
}

func (c *chat) prompt(ctx context.Context, talk *console.Console) error {
	lines, err := console.OpenTerminal(c.history)
	if err != nil {
		return fmt.Errorf("%w; -history names another file, -history '' none", err)
	}
	defer lines.Close() // what it cannot restore is gone
	err = talk.Interact(ctx, lines)
	if ctx.Err() != nil {
		return nil // asked to end
	}
	return err
}

func exitOf(err error) error {
	var stopped *console.StoppedError
	switch {
	case errors.Is(err, console.ErrInterrupted):
		return exitError{exitInterrupted, err}
	case errors.As(err, &stopped):
		return exitError{exitStopped, err}
	case err != nil:
		return errors.New(terminal.Defuse(err.Error())) // may be in the words of others
	}
	return nil
}

// agent is the agent that these flags say, and what the console says of it.
func (c *chat) agent(ctx context.Context) (*agent.Agent, string, error) {
	u, err := c.parse()
	if err != nil {
		return nil, "", err
	}
	getenv, err := withFile(os.Getenv, dotenv)
	if err != nil {
		return nil, "", err
	}
	model, settings, err := c.model.open(getenv)
	if err != nil {
		return nil, "", err
	}
	config := agent.Config{Code: agent.Mind{Provider: model}, Limits: c.limits}
	if c.dir != "" {
		if config.Folder, err = agent.OpenFolder(c.dir); err != nil {
			return nil, "", fmt.Errorf("-dir: %w", err)
		}
		if c.file != (modelSettings{}) {
			if config.File.Provider, _, err = c.file.open(getenv); err != nil {
				return nil, "", fmt.Errorf("-file-model: %w", err)
			}
		}
	}
	config.Executor, config.About, config.Sessions, err = c.reach(ctx, func(err error) error {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // its words are ours to choose
		}
		return fmt.Errorf("no notebox answers at %s (%w): notebox serve starts one, and -url or NOTEBOX_URL names another", c.url, err)
	})
	if err != nil {
		return nil, "", err
	}
	config.Sessions = config.Sessions && c.sessions
	a, err := agent.New(config)
	return a, fmt.Sprintf("%s, code runs at %s. /help says more, exit ends.", settings.Model, u.Host), err
}
