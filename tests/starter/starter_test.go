package starter_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// run starts a shell that stands for the program.
func run(t *testing.T, script string) *starter.Process {
	p, err := starter.Run(exec.Command("sh", "-c", script), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestAwait(t *testing.T) {
	for _, c := range []struct{ desc, line string }{
		{"text", `level=INFO msg="notebox serves" url=http://127.0.0.1:1234 state=/x`},
		{"JSON", `{"level":"INFO","msg":"notebox serves","url":"http://127.0.0.1:1234","state":"/x"}`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			p := run(t, "echo 'another url=http://127.0.0.1:1' >&2; sleep 0.05; echo '"+c.line+"' >&2; exec sleep 60")
			require.NoError(t, p.Await(t.Context()))
			require.Equal(t, "http://127.0.0.1:1234", p.URL)
			require.False(t, p.Over())
			require.ErrorContains(t, p.Stop(t.Context()), "signal: terminated")
			require.True(t, p.Over())
		})
	}
}

func TestAwaitTellsWhyThereIsNoService(t *testing.T) {
	p := run(t, "echo 'no daemon' >&2; exit 3")
	require.ErrorContains(t, p.Await(t.Context()), "exit status 3\nno daemon")
	require.Equal(t, 3, p.ExitCode())
}

// TestStop ends what can end, and kills what does not.
func TestStop(t *testing.T) {
	stubborn := run(t, "trap '' TERM; echo ready >&2; while :; do sleep 0.1; done")
	require.Eventually(t, func() bool { return stubborn.Logged() == "ready\n" }, 10*time.Second, 5*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, stubborn.Stop(ctx), "the service was killed")
	require.True(t, stubborn.Over())

	good := run(t, "trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.1; done")
	require.Eventually(t, func() bool { return good.Logged() == "ready\n" }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, good.Stop(t.Context()))
}

func TestProgramThatIsMissing(t *testing.T) {
	_, err := starter.Launch(starter.Options{Program: t.TempDir() + "/notebox", Folder: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
}
