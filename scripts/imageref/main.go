// Command imageref is `notebox image`, for scripts that build images while the program
// compiles.
package main

import (
	"flag"
	"log"
	"os"

	"notebox/environments"
)

func main() {
	log.SetFlags(0)
	var q environments.Question
	q.Register(flag.CommandLine)
	flag.Parse()
	if err := q.Answer(os.Stdout, flag.Args()); err != nil {
		log.Fatal("imageref: ", err)
	}
}
