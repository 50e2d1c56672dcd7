// The supervisor is the program of a worker: a container that many cells are in.
//
//  1. It makes a group of its own in the control groups that the service has given it, and
//     removes what workers before it have left there (groups.go).
//  2. It starts the zygote in a user and pid namespace whose root is nobody outside
//     (zygote.go). The zygote imports what runs are going to, and then does nothing but fork.
//  3. For each cell that the service opens it makes control groups and a stream, has the
//     zygote fork, puts the fork into the groups, and lets it go on (cell.go).
//  4. It moves bytes between the service and cells, and never looks at them.
//  5. It kills, waits until no process is left, and removes the groups.
//
// It has two capabilities, SETUID and SETGID, to write the zygote's map of ids. It ends when
// the service has been silent, when the zygote ends, or with its container; all cells end
// with it, as it is init of the container, and the zygote of their namespace's.
//
// `supervisor listen SOCKET` is the first process of a container beside the service's, and has
// supervisors for processes (prepare.go, listener.go).
package main

import (
	"fmt"
	"os"

	"notebox/environments/supervisor/wire"
)

// The commands, each with one argument.
const (
	cmdListen = "listen" // SOCKET: prepares the container, and becomes the next
	cmdServe  = "serve"  // SOCKET
	cmdWork   = "work"   // FOLDER of control groups
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	if len(args) != 2 {
		return run(os.Stdin, os.Stdout, wire.GroupsFolder)
	}
	switch command, of := args[0], args[1]; command {
	case cmdListen:
		return prepare(of)
	case cmdServe:
		return serve(of)
	case cmdWork:
		return run(os.Stdin, os.Stdout, of)
	default:
		return fmt.Errorf("%s: no such command", command)
	}
}
