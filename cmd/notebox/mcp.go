package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/peterbourgon/ff/v3"
	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/agent/remote"
	"notebox/client"
	"notebox/server/mcp"
)

const mcpHelp = `A server of the Model Context Protocol on stdin and stdout, for clients that start
their servers as programs. It runs nothing itself: it calls a notebox that runs
elsewhere, at -url, as notebox serve does. Clients that speak streamable HTTP
need no such program: they use /mcp of that notebox.

Each flag is also an environment variable, NOTEBOX_MCP_URL and NOTEBOX_MCP_API_KEY.`

// stdio are the flags of notebox mcp.
type stdio struct{ elsewhere }

func mcpCommand() *ffcli.Command {
	var m stdio
	flags := flag.NewFlagSet("notebox mcp", flag.ContinueOnError)
	m.register(flags)
	return &ffcli.Command{
		Name:       "mcp",
		ShortUsage: "notebox mcp [flags]",
		ShortHelp:  "be an MCP server on stdin and stdout",
		LongHelp:   mcpHelp,
		FlagSet:    flags,
		Options:    []ff.Option{ff.WithEnvVarPrefix("NOTEBOX_MCP")},
		Exec: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			return m.run(ctx, os.Stdin, os.Stdout)
		},
	}
}

// run serves until in ends. Nothing but the protocol is written to out.
func (m *stdio) run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	if _, err := m.parse(); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	api := mcp.API{Notebox: remote.New(client.Options{BaseURL: m.url, Key: m.key, Once: true})}
	reach, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	server, err := mcp.NewServer(reach, api, nil, mcp.Options{Version: mcp.Version})
	var refused *mcp.Refusal
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("mcp: notebox at %s wants an API key: set -api-key or NOTEBOX_MCP_API_KEY", m.url)
	case err != nil:
		return fmt.Errorf("mcp: %w; is it running there? notebox serve starts one, and -url names another", err)
	}
	err = server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}
