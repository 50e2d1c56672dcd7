package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"notebox/tests/e2e/service"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const (
	// soakRuns is how many without NOTEBOX_SOAK_RUNS; `make soak` has 1,000.
	soakRuns = 60
	// longSoakRuns are those of a hundred workers. What is held is looked at longSoakLooks times.
	longSoakRuns, longSoakLooks = 100_000, 10
	longSoakCallers             = 8
	// soakCallers at one time, in the second half.
	soakCallers = 20
	// soakTimeout of one request, the wait for a place included.
	soakTimeout = 6 * time.Minute
)

// soakKinds are run in turn: each way in which a run can end.
var soakKinds = []struct {
	code    string
	timeout float64 // seconds
	status  string
	images  int
	files   int
}{
	{code: "print('hello')", status: "ok"},
	{
		code:   "import pandas as pd\nimport matplotlib.pyplot as plt\npd.Series(range(9)).plot()\nplt.show()",
		status: "ok", images: 1,
	},
	{code: "print('before')\n1/0", status: "error"},
	{code: "open('new.bin', 'wb').write(bytes(200_000))", status: "ok", files: 1},
	{code: "import time\ntime.sleep(60)", timeout: 1, status: "timeout"},
	{code: "import os\nos.kill(os.getpid(), 9)", status: "killed"},
}

// TestSoak has many runs, half of them one after another, half many at a time.
// After them the service holds what it held before.
func TestSoak(t *testing.T) {
	t.Parallel()
	if os.Getenv("NOTEBOX_SOAK_LONG") != "" { // about an hour
		t.Run("long", longSoak)
		return
	}
	t.Run("G13", backToTheBaseline)
}

func backToTheBaseline(t *testing.T) {
	runs := soakRuns
	alone := false // with the machine and its Docker daemon
	if text := os.Getenv("NOTEBOX_SOAK_RUNS"); text != "" {
		var err error
		runs, err = strconv.Atoi(text)
		require.NoError(t, err, "NOTEBOX_SOAK_RUNS")
		alone = true
	}
	p := service.Options{Name: "soak", Env: []string{"GOGC=" + collectAt}}.Start(t)
	h := &holdings{service: p, alone: alone}

	soak(t, p, len(soakKinds), 1, everyKind) // what is made once is made now
	soak(t, p, soakCallers, soakCallers, everyKind)
	before := h.settled(t)
	t.Logf("before %d runs: %s", runs, before)
	soak(t, p, runs/2, 1, everyKind)
	soak(t, p, runs-runs/2, soakCallers, everyKind)
	after := h.settledAs(t, before)
	t.Logf("after:  %s", after)

	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, service.Containers(t, p.ID), "a service that has ended has no containers")
}

// longSoak has 100,000 runs, most of them prints, on a service that renews its workers
// meanwhile: `make soak-long`.
func longSoak(t *testing.T) {
	p := service.Options{Name: "soak", Env: []string{"GOGC=" + collectAt}}.Start(t)
	h := &holdings{service: p} // others may be on the machine
	const othersEvery, runs = 60, longSoakRuns / longSoakLooks
	soak(t, p, runs, longSoakCallers, mostlyPrints(othersEvery))
	before := h.settled(t)
	t.Logf("after %d runs: %s", runs, before)
	for look := 2; look <= longSoakLooks; look++ {
		soak(t, p, runs, longSoakCallers, mostlyPrints(othersEvery))
		t.Logf("after %d runs: %s", look*runs, h.settledAs(t, before))
	}
}

// everyKind has the kinds in turn.
func everyKind(i int) int { return i % len(soakKinds) }

// mostlyPrints has the first kind, and each of the others once in so many runs.
func mostlyPrints(many int) func(int) int {
	return func(i int) int {
		if i %= many; i < len(soakKinds) {
			return i
		}
		return 0
	}
}

// soak has so many runs, each of a kind, and each ends as it should.
func soak(t *testing.T, p *service.Service, runs, callers int, kindOf func(i int) int) {
	t.Helper()
	client := &http.Client{Timeout: soakTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(callers)
	for i := range runs {
		group.Go(func() error {
			if ctx.Err() != nil { // another has failed
				return nil
			}
			return soakOnce(client, p.URL, i, kindOf(i))
		})
	}
	require.NoError(t, group.Wait())
}

func soakOnce(client *http.Client, url string, i, of int) error {
	kind := soakKinds[of]
	request := map[string]any{"code": kind.code}
	if kind.timeout > 0 {
		request["timeout"] = kind.timeout
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	res, err := client.Post(url+"/v1/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var r service.Reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("run %d: %s: %s", i, res.Status, raw)
	}
	if r.Status != kind.status || len(r.Images) != kind.images || len(r.Files) != kind.files {
		return fmt.Errorf("run %d, %q: %s: %s", i, kind.code, res.Status, raw)
	}
	return nil
}
