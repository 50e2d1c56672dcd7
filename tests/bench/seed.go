package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"notebox/notebook"
)

// seedTimeout of one container, which takes some seconds.
const seedTimeout = 2 * time.Minute

// seed runs code as people do without notebox: a file, and a container for it.
type seed struct {
	image  string
	folder string // of this benchmark alone
	label  string // of its containers
	runs   atomic.Int64
}

// arguments of docker. No limits of any kind, as those would only slow it down.
func (s *seed) arguments(name, folder string) []string {
	return []string{
		"run", "--rm", "--name", name, "--label", s.label,
		"-v", folder + ":/mnt/data", "-w", "/mnt/data", "--network", "none",
		"--entrypoint", "jupyter", s.image,
		"nbconvert", "--to", "notebook", "--execute", "code.ipynb", "--output", "executed.ipynb",
	}
}

// once runs c in a container of its own, checks what it left in the folder and
// removes the folder. The time is that from the start of docker to its end.
func (s *seed) once(ctx context.Context, c benchCase) (time.Duration, error) {
	folder := filepath.Join(s.folder, strconv.FormatInt(s.runs.Add(1), 10))
	source, err := notebook.New([]string{c.code}, notebook.Kernel{Name: "python3", DisplayName: "Python 3", Language: "python"})
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "code.ipynb"), source, 0o600); err != nil {
		return 0, err
	}
	took, err := s.execute(ctx, folder)
	if err != nil {
		return 0, fmt.Errorf("%s: docker run: %w", c.name, err)
	}
	return took, c.checkFolder(folder)
}

func (s *seed) execute(ctx context.Context, folder string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, seedTimeout)
	defer cancel()
	name := "notebox-bench-" + filepath.Base(s.folder) + "-" + filepath.Base(folder)
	cmd := exec.CommandContext(ctx, "docker", s.arguments(name, folder)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error {
		_ = exec.Command("docker", "kill", name).Run() // it may have ended by itself
		return cmd.Process.Kill()
	}
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, output.Bytes())
	}
	return took, nil
}

func (c benchCase) checkFolder(folder string) error {
	raw, err := os.ReadFile(filepath.Join(folder, "executed.ipynb"))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if err := c.checkNotebook(raw); err != nil || c.file == nil {
		return err
	}
	written, err := os.Open(filepath.Join(folder, c.file.name))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer written.Close()
	return c.file.compare(written)
}

// attack keeps as many containers running for d as there are callers.
func (s *seed) attack(ctx context.Context, c benchCase, callers int, d time.Duration) ([]hit, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		hits    []hit
		started = time.Now()
	)
	for range callers {
		all.Go(func() {
			for time.Since(started) < d && ctx.Err() == nil {
				took, err := s.once(ctx, c)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				hits = append(hits, hit{end: time.Since(started), latency: took})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return hits, context.Cause(ctx)
}
