package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout of a service, until it says where it answers.
	startTimeout = time.Minute
	// stopTimeout is above what notebox gives its runs and itself to end.
	stopTimeout = time.Minute
)

// service is a notebox process of this benchmark's own.
type service struct {
	id     string // its --service-id
	url    string
	size   int // of its pool
	folder string

	cmd    *exec.Cmd
	exited chan struct{}
	err    error // may be read when exited is closed
}

// startService starts o's program with a pool of that size, in a new folder below
// folder, and waits until its pool is full.
func startService(ctx context.Context, o options, folder, name string, size int) (_ *service, err error) {
	s := &service{
		id:     "bench-" + filepath.Base(folder) + "-" + name,
		size:   size,
		folder: filepath.Join(folder, name),
		exited: make(chan struct{}),
	}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return nil, err
	}
	program, err := filepath.Abs(o.notebox)
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, s.arguments(o.serveFlags)...)
	// It reads .env where it stands, and variables; neither is to have a say here.
	s.cmd.Dir, s.cmd.Env = s.folder, withoutSettings(os.Environ())
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.notebox, err)
	}
	if err := s.awaitIdle(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *service) arguments(more []string) []string {
	args := []string{
		"serve", "--listen", "127.0.0.1:0", "--service-id", s.id,
		"--state-dir", filepath.Join(s.folder, "state"),
		"--storage", "file://" + filepath.ToSlash(s.stored()),
		// Of one size throughout, so that a full pool is always the same.
		"--pool-size", strconv.Itoa(s.size), "--pool-max", strconv.Itoa(s.size),
		"--probe-every", "0", // its state is asked for all the time, and a run of /readyz's own would be measured
	}
	return append(args, more...)
}

func (s *service) stored() string { return filepath.Join(s.folder, "files") }

func withoutSettings(environ []string) []string {
	var out []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "NOTEBOX_") {
			out = append(out, v)
		}
	}
	return out
}

// start returns when the service has said where it answers. What it says goes to
// the file log.
func (s *service) start(ctx context.Context) error {
	log, err := os.Create(filepath.Join(s.folder, "log"))
	if err != nil {
		return err
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		log.Close()
		return err
	}
	if err := s.cmd.Start(); err != nil {
		log.Close()
		return err
	}
	url := make(chan string, 1)
	go func() {
		defer close(s.exited)
		defer log.Close()
		find(io.TeeReader(stderr, log), url)
		s.err = s.cmd.Wait()
	}()
	select {
	case s.url = <-url:
		return nil
	case <-s.exited:
		return fmt.Errorf("it ended: %w\n%s", s.err, s.lastWords())
	case <-time.After(startTimeout):
		err = fmt.Errorf("it does not answer after %s\n%s", startTimeout, s.lastWords())
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, s.stop())
}

// find reads r to its end and sends the first address in it.
func find(r io.Reader, url chan<- string) {
	sent := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), " url="); ok && !sent {
			address, _, _ := strings.Cut(rest, " ")
			url <- address
			sent = true
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line that is too long
}

// lastWords are the end of the log.
func (s *service) lastWords() string {
	raw, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(raw[max(0, len(raw)-4000):])
}

// dropStored removes what runs have left: nothing else does, and 200 files of
// 50 MB would fill a disk. Only while nothing runs.
func (s *service) dropStored() error {
	entries, err := os.ReadDir(s.stored())
	if errors.Is(err, fs.ErrNotExist) { // a store elsewhere, by -serve-flags
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.stored(), e.Name())))
	}
	return err
}

// stop ends the service as an operator would, and makes sure that nothing of it is left.
func (s *service) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fmt.Errorf("the service did not end within %s and was killed\n%s", stopTimeout, s.lastWords())
	}
	if s.err != nil {
		return fmt.Errorf("the service: %w\n%s", s.err, s.lastWords())
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	left, err := s.containers(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the service left containers behind: %s", left)
	}
	return err
}

// stopAll ends several services at one time.
func stopAll(services ...*service) error {
	errs := make([]error, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() { errs[i] = s.stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// containers lists the ids of those that the service has.
func (s *service) containers(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "docker", "ps", "-aq", "--no-trunc", "--filter", "label=notebox.service="+s.id).Output()
	if err != nil {
		return nil, fmt.Errorf("docker ps: %w", err)
	}
	return strings.Fields(string(out)), nil
}
