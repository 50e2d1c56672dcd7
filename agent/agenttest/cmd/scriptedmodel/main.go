// Command scriptedmodel serves a script in place of a model, for tests that are not
// written in Go. It prints the base URL for OpenAI's clients on a line of its own, and
// serves until it is ended by a signal, or its standard input closes with -stdin.
//
//	go run ./agent/agenttest/cmd/scriptedmodel -dialogue script.json
//
// Anthropic's clients take the URL without /v1. GET /failures lists the requests that
// were not as the script or the protocol wants them, GET /requests all others.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"notebox/agent/agenttest"
)

func main() {
	log.SetFlags(0)
	script := flag.String("dialogue", "", "JSON file with what the model says, see agenttest.Script")
	listen := flag.String("listen", "127.0.0.1:0", "address to serve")
	untilEOF := flag.Bool("stdin", false, "end when standard input closes")
	flag.Parse()
	if err := run(*script, *listen, *untilEOF); err != nil {
		log.Fatal("scriptedmodel: ", err)
	}
}

func run(path, listen string, untilEOF bool) error {
	script, err := agenttest.Load(path)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	s, err := agenttest.Start(listen, script)
	if err != nil {
		return err
	}
	fmt.Println(s.URL())
	<-ctx.Done()
	return s.Close()
}
