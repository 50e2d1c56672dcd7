// Package commandline holds tests alone: notebox as people call it from a shell, with real
// sandboxes, in pipes and on a terminal.
package commandline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

// shared is the service that calls with --url reach.
var shared service.Service

func TestMain(m *testing.M) { os.Exit(service.Main(m, &shared, "^$")) }

// call is one call of the program.
type call struct {
	args  []string
	stdin string
	env   []string
	dir   string // "": a new one
}

// ended is what became of a call.
type ended struct {
	out, said string
	exit      int
}

// command is the program, ready to be started. It has no NOTEBOX_ variables but those of c.
func (c *call) command(t *testing.T) *exec.Cmd {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	if c.dir == "" {
		c.dir = t.TempDir()
	}
	cmd := exec.Command(program, c.args...)
	cmd.Dir, cmd.Stdin = c.dir, strings.NewReader(c.stdin)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NOTEBOX_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

func (c call) run(t *testing.T) ended {
	t.Helper()
	var out, said bytes.Buffer
	cmd := c.command(t)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed)
	}
	return ended{out.String(), said.String(), cmd.ProcessState.ExitCode()}
}

// inPlaces runs a test in this process's own sandboxes, and by the shared service.
func inPlaces(t *testing.T, test func(t *testing.T, env []string)) {
	for _, place := range []struct {
		name string
		env  []string
	}{{"local", nil}, {"service", []string{"NOTEBOX_URL=" + shared.URL}}} {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			test(t, place.env)
		})
	}
}

// write makes files of a folder, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return folder
}

// soon is how long a test waits for what takes seconds on an idle machine.
const soon = 2 * time.Minute
