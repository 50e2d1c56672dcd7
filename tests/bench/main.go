package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.table != "" {
		r, err := readReport(o.table)
		if err != nil {
			return err
		}
		return r.writeTables(os.Stdout)
	}
	r, err := measure(ctx, o)
	if err != nil {
		return err
	}
	if err := r.writeTables(os.Stdout); err != nil {
		return err
	}
	r.writeTargets(os.Stdout)
	if err := r.writeFile(o.out); err != nil {
		return err
	}
	log.Printf("written: %s", o.out)
	return nil
}
