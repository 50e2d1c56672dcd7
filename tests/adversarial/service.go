package adversarial

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"notebox/tests/starter"
)

// poolSize is how many sandboxes a service keeps warm: for the neighbour, for the case
// and for the run after it.
const poolSize = 3

// Service is notebox serve as a process, with a folder of its own.
type Service struct{ *starter.Process }

// StartService starts the program below folder, on a free port, with these flags
// besides those that tests need, and these variables.
func StartService(notebox, folder, id string, flags map[string]string, env []string) (*Service, error) {
	temporary := filepath.Join(folder, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, err
	}
	all := map[string]string{
		"pool-size":   fmt.Sprint(poolSize),
		"pool-max":    fmt.Sprint(poolSize), // so that their number is known
		"pool-by-use": "0",                  // likewise, whatever languages the requests ask for
		"max-running": "8",                  // more than any core count would give, so that none waits
		"drain":       "1s",
		"timeout":     defaultTimeout.String(),
	}
	maps.Copy(all, flags)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "--"+name+"="+strings.ReplaceAll(all[name], "{folder}", folder))
	}
	p, err := starter.Start(context.Background(), starter.Options{
		Program: notebox, ID: id, Folder: folder, Flags: args, Env: append(slices.Clone(env), "TMPDIR="+temporary),
	})
	return &Service{p}, err
}
