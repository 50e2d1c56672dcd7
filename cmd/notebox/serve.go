package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"
)

const serveHelp = `Each flag is also an environment variable, NOTEBOX_ and the flag in capitals:
--max-body is NOTEBOX_MAX_BODY. notebox reads variables from a file .env in the
current folder too, and flags from the file that --config names. If a flag is set
several times, the command line counts first, then the environment, then .env, and
the file last. notebox config prints what is in force.`

func serveCommand() *ffcli.Command {
	var s settings
	flags := flag.NewFlagSet("notebox serve", flag.ContinueOnError)
	groups := s.register(flags)
	return &ffcli.Command{
		Name:       "serve",
		ShortUsage: "notebox serve [flags]",
		ShortHelp:  "answer the HTTP API",
		LongHelp:   serveHelp,
		UsageFunc:  groups.usage,
		FlagSet:    flags,
		Options:    variableOptions(),
		Exec: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			if err := readConfig(flags, s.config); err != nil {
				return err
			}
			log := s.observe.logger(os.Stderr)
			logExports(log)
			warnOfVariables(log, flags, os.Environ(), dotenv)
			p, err := newProgram(ctx, s, log)
			if err != nil {
				return err
			}
			return errors.Join(p.run(ctx), p.close())
		},
	}
}

// run serves until ctx ends, then lets runs end, cancels those that take longer
// than --drain, and returns when the last reply is out or, where no client waits
// for it, stored.
func (p *program) run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- p.http.Serve(p.listener) }()
	p.log.Info("notebox serves", "url", "http://"+p.listener.Addr().String(), "state", p.settings.stateDir, "storage", p.store.Name())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.log.Info("ending: no new requests; waiting for those that run", "drain", p.settings.drain)
	if p.shutdown(p.settings.drain) == nil {
		return nil
	}
	p.api.CancelRuns()
	if err := p.shutdown(closeTimeout); err != nil {
		p.log.Warn("runs that do not end, or clients that take no reply, are left", "error", err)
		return p.http.Close()
	}
	return nil
}

func (p *program) shutdown(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return errors.Join(p.http.Shutdown(ctx), p.api.Wait(ctx))
}
