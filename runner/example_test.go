package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
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

	pool := pool.New(engine, pool.Options{
		Limits: runner.DefaultLimits(),
		Stocks: []pool.StockOptions{{Environment: env, Min: 1, Max: 1}}, // started before there is a run
		Log:    slog.Default(),
	})
	defer pool.Close(context.Background())
	runs := admission.New(pool, admission.Limits{MaxRunning: 2})
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

// A session keeps its variables and files from run to run, and needs no server either.
func Example_session() {
	host := runnertest.NewFake()
	pool := pool.New(host.Engine("example"), pool.Options{Log: slog.Default()})
	defer pool.Close(context.Background())
	places := admission.New(pool, admission.Limits{MaxRunning: 2})
	sessions := session.New(pool, places, session.Options{MaxSessions: 10})
	defer sessions.Close(context.Background())

	ctx := context.Background()
	session, err := sessions.Open(ctx, runner.SessionSpec{
		ID: "unguessable", Owner: "me", Environment: runner.Environment{Name: "jupyter", Image: "notebox/jupyter:dev"},
		Limits: runner.DefaultLimits(), TTL: time.Hour, Idle: 10 * time.Minute,
	})
	if err != nil {
		fmt.Println("no session:", err)
		return
	}
	if _, err := session.Write(ctx, "in.txt", strings.NewReader("a file")); err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range []string{`number = 41`, `print(number + 1)`, `print(open("in.txt").read())`} {
		_, err := session.Run(ctx, runner.Spec{
			ID: "step", Notebook: runnertest.Notebook(step), Limits: runner.DefaultLimits(),
		}, terminal{})
		if err != nil {
			fmt.Println("the service failed:", err)
			return
		}
	}
	files, _, err := session.List(ctx, "", true)
	for _, f := range files {
		fmt.Println(f.Path, f.Size, err)
	}
	// Output:
	// 42
	// a file
	// in.txt 6 <nil>
}
