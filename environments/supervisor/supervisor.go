package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"notebox/environments/supervisor/wire"
)

// supervisor is the state of the one that runs.
type supervisor struct {
	link   *wire.Link
	groups *groups
	zygote *zygote

	mu    sync.Mutex
	cells map[uint32]*cell
	last  uint32 // the highest number of a cell so far
}

// run serves one service until it is silent, or something fails.
func run(in io.Reader, out io.Writer) error {
	s := &supervisor{link: wire.NewLink(out), cells: map[uint32]*cell{}}
	failed := make(chan error, 3)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	heard := make(chan struct{}, 1)
	go func() {
		fail(s.link.Serve(heardReader{in, heard}, func(m wire.Message) error { return s.handle(m, fail) }))
	}()
	silence := time.NewTimer(wire.Silence)
	for {
		select {
		case <-heard:
			silence.Reset(wire.Silence)
		case <-silence.C:
			return errors.New("the service is silent")
		case err := <-failed:
			_ = s.link.SendJSON(wire.KindFailed, 0, wire.Failed{Message: err.Error()})
			return err
		}
	}
}

// heardReader tells of each read that brought something.
type heardReader struct {
	io.Reader
	heard chan<- struct{}
}

func (r heardReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	select {
	case r.heard <- struct{}{}:
	default:
	}
	return n, err
}

// handle takes a message that is no cell's data. It does not wait.
func (s *supervisor) handle(m wire.Message, fail func(error)) error {
	switch m.Kind {
	case wire.KindSetup:
		setup, err := wire.Decode[wire.Setup](m)
		if err != nil {
			return err
		}
		go func() {
			if err := s.setUp(setup, fail); err != nil {
				fail(err)
			}
		}()
		return nil
	case wire.KindOpen:
		open, err := wire.Decode[wire.Open](m)
		if err != nil {
			return err
		}
		return s.open(m.Cell, open)
	case wire.KindKill:
		s.mu.Lock()
		c := s.cells[m.Cell]
		s.mu.Unlock()
		if c != nil {
			c.kill()
		}
		return nil
	}
	return fmt.Errorf("message %q", rune(m.Kind))
}

func (s *supervisor) setUp(setup wire.Setup, fail func(error)) error {
	filter, err := compile(setup.Seccomp)
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	groups, err := newGroups(groupsFolder, setup.Name)
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	zygote, err := startZygote(setup, filter, groups)
	if err != nil {
		return fmt.Errorf("zygote: %w", err)
	}
	s.mu.Lock()
	s.groups, s.zygote = groups, zygote
	s.mu.Unlock()
	go func() { fail(fmt.Errorf("the zygote ended: %w", zygote.serve())) }()
	return s.link.SendJSON(wire.KindUp, 0, wire.Up{Version: wire.Version, Log: zygote.log.String()})
}

func (s *supervisor) open(number uint32, o wire.Open) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.zygote == nil:
		return errors.New("a cell before the worker is up")
	case number <= s.last:
		return fmt.Errorf("cell %d again", number)
	}
	s.last = number
	c := newCell(s, number, o)
	s.cells[number] = c
	go c.run()
	return nil
}

func (s *supervisor) forget(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cells, number)
}
