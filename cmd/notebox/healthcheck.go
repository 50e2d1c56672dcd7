package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/peterbourgon/ff/v3"
	"github.com/peterbourgon/ff/v3/ffcli"
)

// healthcheckTimeout is below the time that container engines give a check.
const healthcheckTimeout = 10 * time.Second

// healthcheckCommand asks a service whether it could run code now, for images
// that have no curl.
func healthcheckCommand() *ffcli.Command {
	flags := flag.NewFlagSet("notebox healthcheck", flag.ContinueOnError)
	url := flags.String("url", "http://127.0.0.1:8080/readyz", "Ask this `URL`.")
	return &ffcli.Command{
		Name:       "healthcheck",
		ShortUsage: "notebox healthcheck [flags]",
		ShortHelp:  "exit with 0 if a service answers that it is ready",
		FlagSet:    flags,
		Options:    []ff.Option{ff.WithEnvVarPrefix("NOTEBOX_HEALTHCHECK")},
		Exec: func(ctx context.Context, _ []string) error {
			ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, *url, nil)
			if err != nil {
				return err
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answers %s", *url, res.Status)
			}
			return nil
		},
	}
}
