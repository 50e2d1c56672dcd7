package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/peterbourgon/ff/v3/ffcli"
)

// build is what the program knows of how it came to be.
type build struct {
	Version  string `json:"version"`          // of the module; "(devel)" if nobody stamped one
	Commit   string `json:"commit,omitempty"` // of git; empty if it was not built in a checkout
	Time     string `json:"time,omitempty"`   // of the commit, RFC 3339
	Modified bool   `json:"modified"`         // whether the checkout had other changes
	Go       string `json:"go"`               // that compiled it
	Platform string `json:"platform"`         // linux/amd64
}

// readBuild reads what the compiler has put into the program.
func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) write(w io.Writer) error {
	line := "notebox " + b.Version
	if b.Commit != "" {
		line += ", commit " + b.Commit
		if b.Modified {
			line += " with changes"
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s\n", line, b.Go, b.Platform)
	return err
}

func versionCommand() *ffcli.Command {
	flags := flag.NewFlagSet("notebox version", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "Print a JSON object.")
	return &ffcli.Command{
		Name:       "version",
		ShortUsage: "notebox version [--json]",
		ShortHelp:  "print the version, the commit and the Go version",
		FlagSet:    flags,
		Exec: func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			if *asJSON {
				return writeJSON(os.Stdout, readBuild())
			}
			return readBuild().write(os.Stdout)
		},
	}
}

// writeJSON prints v for a program that people look at too.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
