package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/runner/cells"
	"notebox/runner/docker"
)

const (
	// cleanUpTime is how long a daemon may take to make what it was asked for by a process that
	// was killed meanwhile.
	cleanUpTime, cleanUpPause = 20 * time.Second, time.Second
	// nothingLeft says on the pipe that there is nothing to do.
	nothingLeft = "nothing"
	// runFolder is the pattern of the folders of notebox run, below that for temporary ones.
	runFolder = "notebox-run-*"
)

// cleanUpAfter starts a process that removes what this one leaves behind, however it ends: it waits
// for the end of a pipe. What it returns says whether anything may be left now.
func cleanUpAfter(folder string) (func(left bool) error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	other := exec.Command(self, "cleanup", folder)
	pipe, err := other.StdinPipe()
	if err != nil {
		return nil, err
	}
	other.SysProcAttr = apart()
	if err := other.Start(); err != nil {
		return nil, fmt.Errorf("clean up: %w", err)
	}
	return func(left bool) error {
		if left { // it goes on by itself
			return pipe.Close()
		}
		_, err := io.WriteString(pipe, nothingLeft)
		return errors.Join(os.RemoveAll(folder), err, pipe.Close())
	}, nil
}

// cleanupCommand is that process. It is in no list.
func cleanupCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:       "cleanup",
		ShortUsage: "notebox cleanup FOLDER",
		FlagSet:    flag.NewFlagSet("notebox cleanup", flag.ContinueOnError),
		Exec: func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return errors.New("cleanup: name the folder of a run")
			}
			if err := isRuns(args[0]); err != nil {
				return err
			}
			if said, _ := io.ReadAll(os.Stdin); string(said) == nothingLeft {
				return nil
			}
			return cleanUp(ctx, args[0])
		},
	}
}

// isRuns refuses a folder that openLocal has not made: it is going to be removed.
func isRuns(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	ours, err := filepath.Match(runFolder, filepath.Base(folder))
	if err != nil || !ours || !info.IsDir() || filepath.Dir(filepath.Clean(folder)) != filepath.Clean(os.TempDir()) {
		return fmt.Errorf("cleanup: %s is no folder of notebox run", folder)
	}
	return nil
}

// cleanUp removes the sandboxes of the service that has kept its id in a folder, and the folder.
func cleanUp(ctx context.Context, folder string) error {
	raw, err := os.ReadFile(filepath.Join(folder, "service-id"))
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err != nil { // it has started nothing
		return nil
	}
	id := strings.TrimSpace(string(raw))
	engine, err := docker.New(docker.Options{ServiceID: id, Layers: layersOfRuns, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < cleanUpTime; time.Sleep(cleanUpPause) {
		cells.Tidy(id) // first: what stands still cannot end
		_, err = engine.Reap(ctx)
	}
	cells.Tidy(id)
	return errors.Join(err, engine.Images().Sweep(ctx))
}
