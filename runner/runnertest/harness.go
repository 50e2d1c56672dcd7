package runnertest

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"notebox/runner"
)

// Harness is what an engine brings to its conformance test.
type Harness struct {
	// Engine returns an engine as a new process of the service would have it.
	// What it holds is released when the test ends.
	Engine func(t *testing.T, service string) runner.Engine
	// Left returns the IDs of the sandboxes that there are of a service now, in
	// whatever state.
	Left func(t *testing.T, service string) []string
	// Together is that the sandboxes of one engine are reaped with what they are in, which is
	// not counted.
	Together bool
	// Environment is there, Missing is not.
	Environment, Missing runner.Environment
	// Limits of the suite's runs; their Timeout is how long those take which
	// are to reach it.
	Limits runner.Limits
}

// Bounds of the suite, on a machine of usual speed or on a slower one.
var (
	// patience is how long the suite waits for anything, so that a hang is a
	// failure with a name. Starts are slow on a busy machine.
	patience = Patient(60 * time.Second)
	// lonely is how long a sandbox may live that nobody talks to: it waits for 30 s.
	lonely = 2 * patience
	// overtime is how long a run may take beyond its time limit, from its first
	// output on.
	overtime = Patient(5 * time.Second)
	// promptly is how long the end of a context may take to be obeyed.
	promptly = Patient(5 * time.Second)
)

// pingEvery is how often a sandbox hears something that is not to end meanwhile.
const pingEvery = 5 * time.Second

// Patient is a bound of a test on this machine. NOTEBOX_TEST_SLOWER says how many times as long
// as a usual one the machine takes: an emulated one does.
func Patient(bound time.Duration) time.Duration {
	if times, err := strconv.Atoi(os.Getenv("NOTEBOX_TEST_SLOWER")); err == nil && times > 1 {
		return bound * time.Duration(times)
	}
	return bound
}

// TestEngine tests that an engine does what its contract says, and that runs on
// it end in all the ways there are; that it keeps sandboxes only if it is a Keeper.
func TestEngine(t *testing.T, h Harness) {
	for _, s := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Start", testStart},
		{"Kill", testKill},
		{"KillAfterEnd", testKillAfterEnd},
		{"CloseEndsReads", testCloseEndsReads},
		{"CancelledStart", testCancelledStart},
		{"MissingImage", testMissingImage},
		{"Reap", testReap},
		{"Keep", testKeep},
		{"KeptAreReaped", testKeptAreReaped},
		{"Apart", testApart},
		{"Run", testRuns},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.test(t, h)
		})
	}
}

// newService returns the id of a service that nobody else has.
func newService() string { return "test-" + strings.ToLower(rand.Text()) }
