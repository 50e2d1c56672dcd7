package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/cmd/notebox/internal/completion"
	"notebox/cmd/notebox/internal/manual"
	"notebox/storage"
	"notebox/terminal"
)

const completionHelp = `Prints what a shell reads once, so that Tab completes subcommands, flags, their values,
files and folders.

  bash   source <(notebox completion bash)                in ~/.bashrc
  zsh    source <(notebox completion zsh)                 in ~/.zshrc, after compinit
  fish   notebox completion fish | source                 in ~/.config/fish/config.fish`

func completionCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:       "completion",
		ShortUsage: "notebox completion bash|zsh|fish",
		ShortHelp:  "print what makes a shell complete notebox's words",
		LongHelp:   completionHelp,
		FlagSet:    flag.NewFlagSet("notebox completion", flag.ContinueOnError),
		Exec: func(_ context.Context, args []string) error {
			if len(args) != 1 {
				return errors.New("completion: name the shell: bash, zsh or fish")
			}
			script, err := completion.Script(args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(os.Stdout, script)
			return err
		},
	}
}

// completeCommand is what the scripts of notebox completion call at each Tab. It has no word
// of help, so it is in no list.
func completeCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:       "complete",
		ShortUsage: "notebox complete -- [word …]",
		FlagSet:    flag.NewFlagSet("notebox complete", flag.ContinueOnError),
		Exec: func(_ context.Context, args []string) error {
			return completion.Of(command(), args, flagValues).Write(os.Stdout)
		},
	}
}

// flagValues are those of flags that have few.
func flagValues(name string) []string {
	return map[string][]string{
		"engine":       {engineDocker, engineSidecar, engineKubernetes},
		"isolation":    {isolationAuto, isolationCell, isolationContainer},
		"serve-files":  {storage.ServeAuto, storage.ServeProxy},
		"log-format":   {"text", "json"},
		"log-level":    {"debug", "info", "warn", "error"},
		"dependencies": {"on", "off"},
		"images": {
			"auto", string(terminal.PicturesKitty), string(terminal.PicturesITerm2),
			string(terminal.PicturesSixel), string(terminal.PicturesOff),
		},
	}[name]
}

// manCommand writes the man pages, for make man and for packages. It is in no list either.
func manCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:       "man",
		ShortUsage: "notebox man DIR",
		FlagSet:    flag.NewFlagSet("notebox man", flag.ContinueOnError),
		Exec: func(_ context.Context, args []string) error {
			if len(args) != 1 {
				return errors.New("man: name the folder that the pages go into")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			b := readBuild()
			date, err := time.Parse(time.RFC3339, b.Time)
			if err != nil { // it was not built in a checkout
				date = time.Now()
			}
			for _, page := range manual.Pages(command(), "notebox", b.Version, date) {
				if err := os.WriteFile(filepath.Join(args[0], page.Name), []byte(page.Text), 0o644); err != nil {
					return fmt.Errorf("man: %w", err)
				}
			}
			return nil
		},
	}
}
