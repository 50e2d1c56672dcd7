// Command standin is what runs in the sandboxes of the fault tests' own Docker
// daemons. It speaks the sandbox protocol as environments/harness does, and is one
// static file: the real image has two gigabytes, which each daemon would have to be
// given.
//
//	standin         serves one run
//	standin exits   ends at once, and says why on stderr
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"notebox/runner/runnertest"
)

const (
	// exitCode of a standin that ends at once.
	exitCode = 3
	// bigFile in bytes: larger than what is left on the full disks of the tests.
	bigFile = 4 << 20
	// shortRun is long enough to be in the middle of, and over before a drain is.
	shortRun = 2 * time.Second
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "exits" {
		fmt.Fprintln(os.Stderr, "standin: there is no kernel")
		os.Exit(exitCode)
	}
	host := runnertest.NewFake()
	host.On("1+1", func(k *runnertest.Kernel) { k.Print("2\n") }) // what a service may prove itself by
	host.On("write big and small", func(k *runnertest.Kernel) {
		k.Files["big"], k.Files["small"] = strings.Repeat("x", bigFile), "small"
		k.Print("written\n")
	})
	host.On("sleep a little", func(k *runnertest.Kernel) {
		k.Print("started\n")
		time.Sleep(shortRun)
		k.Print("ended\n")
	})
	os.Exit(host.Program(runnertest.Stream{
		ReadWriter: stdio{os.Stdin, os.Stdout},
		Closed:     make(chan struct{}), // the honest program reads, and needs it not
	}))
}

// stdio is the container's end of a sandbox's stream.
type stdio struct {
	io.Reader
	io.Writer
}
