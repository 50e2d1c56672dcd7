// Command run runs a program in a sandbox, without a service and without HTTP, and shows
// what comes back. Its image must be there (make image), and Docker.
//
//	go run ./examples/run -store /tmp/runs program.py
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/runner"
	"notebox/runner/docker"
	"notebox/runner/pool"
	"notebox/storage"
)

func main() {
	folder := flag.String("store", "runs", "where what the program leaves is `kept`")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("run: which program?")
	}
	if err := run(context.Background(), *folder, flag.Arg(0)); err != nil {
		log.Fatal("run: ", err)
	}
}

func run(ctx context.Context, folder, program string) (err error) {
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	all, err := environments.Load("")
	if err != nil {
		return err
	}
	engine, err := docker.New(docker.Options{ServiceID: "example-run", Log: slog.Default()})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	pool := pool.New(engine, pool.Options{Limits: runner.DefaultLimits(), Log: slog.Default()})
	defer pool.Close(ctx)
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	store, err := storage.Open(ctx, storage.Options{
		URL: (&url.URL{Scheme: "file", Path: folder}).String(), KeyFile: filepath.Join(folder, ".key"),
	})
	if err != nil {
		return err
	}
	defer store.Close()
	temp, err := os.MkdirTemp("", "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	in, err := intake.New(temp, 1, func() bool { return false }, slog.Default())
	if err != nil {
		return err
	}
	x, err := executor.New(executor.Config{Runner: pool, Store: store, Environments: all, Intake: in})
	if err != nil {
		return err
	}
	defer x.Close()

	source := string(code)
	r, err := x.Begin(ctx, nil, &executor.Order{Code: &source})
	if err != nil {
		return err
	}
	defer r.Leave()
	r.Start(executor.Silence{})
	if _, err := r.Wait(ctx); err != nil {
		return err
	}
	result := r.Result()
	fmt.Print(result.Status, "\n", result.Text)
	for _, f := range result.Files {
		fmt.Println("file", f.Path, f.Bytes, "bytes")
	}
	for _, i := range result.Images {
		fmt.Println("image", i.Name, i.Width, "x", i.Height)
	}
	return nil
}
