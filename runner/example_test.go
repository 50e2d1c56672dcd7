package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// terminal is a Sink that shows what a run writes.
type terminal struct{}

func (terminal) Output(e runner.Event) {
	var output struct {
		Text string `json:"text"`
	}
	if e.Kind == runner.EventOutput && json.Unmarshal(e.Output, &output) == nil {
		fmt.Print(output.Text)
	}
}

func (terminal) File(_ context.Context, path string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err == nil {
		fmt.Printf("%s: %d bytes\n", path, len(data))
	}
	return err
}

// A notebook runs without a server. With real sandboxes, the engine is that of
// package runner/docker and the image that of package environments.
func Example() {
	engine := runnertest.NewFake().Engine("example")
	env := runner.Environment{Name: "jupyter", Image: "notebox/jupyter:dev"}

	pool := runner.NewPool(engine, runner.PoolOptions{
		Limits: runner.DefaultLimits(),
		Stocks: []runner.StockOptions{{Environment: env, Min: 1, Max: 1}}, // started before there is a run
		Log:    slog.Default(),
	})
	defer pool.Close(context.Background())
	runs := runner.NewAdmission(runner.NewSingleUse(pool), runner.AdmissionLimits{MaxRunning: 2})
	outcome, err := runs.Run(context.Background(), runner.Spec{
		ID:          "example",
		Environment: env,
		Notebook:    runnertest.Notebook(`print("hello")`),
		Limits:      runner.DefaultLimits(),
	}, terminal{})
	if err != nil {
		fmt.Println("the service failed:", err)
		return
	}
	fmt.Println(outcome.Status)
	// Output:
	// hello
	// ok
}
