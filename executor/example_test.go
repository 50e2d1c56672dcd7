package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/runner"
	"notebox/storage"
)

// drawing stands for a real runner, such as pool.Pool: whatever it is given, it
// shows a picture and leaves a file.
type drawing struct{}

func (drawing) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if err := events.File(ctx, "out.txt", strings.NewReader("done")); err != nil {
		return nil, err
	}
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	shown := `"outputs":[{"output_type":"display_data","metadata":{},"data":{"image/png":"` + png + `"}}]`
	executed := strings.Replace(string(spec.Notebook), `"outputs":[]`, shown, 1)
	return &runner.Outcome{Status: runner.StatusOK, Notebook: []byte(executed)}, nil
}

// A run without HTTP. examples/run is the same with Docker.
func Example() {
	ctx := context.Background()
	folder, _ := os.MkdirTemp("", "example-")
	defer os.RemoveAll(folder)
	store, err := storage.Open(ctx, storage.Options{URL: "mem://"})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	in, err := intake.New(folder, 1, func() bool { return false }, slog.Default())
	if err != nil {
		panic(err)
	}
	x, err := executor.New(executor.Config{
		Runner: drawing{}, Store: store, Intake: in,
		Environments: []environments.Environment{{Name: "jupyter", Language: "python", Kernel: environments.Kernel{Name: "python3"}}},
	})
	if err != nil {
		panic(err)
	}
	defer x.Close()

	code := "plt.plot([1, 2, 3])"
	run, err := x.Begin(ctx, nil, &executor.Order{Code: &code, Base: "https://code.example.org"})
	if err != nil {
		panic(err)
	}
	defer run.Leave()
	run.Start(executor.Silence{})
	if _, err := run.Wait(ctx); err != nil {
		panic(err)
	}
	r := run.Result()
	fmt.Println(r.Status, r.Files[0].Path, r.Files[0].Bytes, r.Images[0].Name, r.Images[0].Width)
	fmt.Println(strings.HasPrefix(r.Images[0].URL, "https://code.example.org/v1/files/runs/"))
	// Output:
	// ok /mnt/data/out.txt 4 image_0.png 1
	// true
}
