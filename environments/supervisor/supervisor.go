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
	folder string // of control groups
	in     *wire.Intake
	out    io.Writer
	groups *groups
	zygote *zygote
	setup  wire.Setup

	pings   chan struct{} // that have no answer yet
	calming sync.Mutex    // held while cells stand still, and a moment longer
	leaving chan struct{} // closed when no cell may stand still any more
	left    func()        // closes it

	mu    sync.Mutex
	link  *wire.Link // to the service that is there
	cells map[uint32]*cell
	last  uint32 // the highest number of a cell so far
}

// run serves services, one after the other, until there is none and no cell is kept, or
// something fails. folder is where the control groups are that it may write to.
func run(in io.Reader, out io.Writer, folder string) error {
	heard := make(chan struct{}, 1)
	s := &supervisor{folder: folder, in: wire.NewIntake(heardReader{in, heard}), out: out, pings: make(chan struct{}, 1), leaving: make(chan struct{}), link: wire.NewLink(out), cells: map[uint32]*cell{}}
	s.left = sync.OnceFunc(func() { close(s.leaving) })
	go s.answer()
	failed := make(chan error, 3)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	go func() { fail(s.serve(fail)) }()
	silence := time.NewTimer(wire.Silence)
	for {
		select {
		case <-heard:
			silence.Reset(wire.Silence)
		case <-silence.C:
			if len(s.leave()) == 0 {
				return errors.New("the service is silent")
			}
			silence.Reset(wire.Silence)
		case err := <-failed:
			_ = s.current().SendJSON(wire.KindFailed, 0, failure(err))
			return err
		}
	}
}

// beside reports whether this process is one of a listener's.
func (s *supervisor) beside() bool { return s.folder != wire.GroupsFolder }

// answer answers pings to the end of this process.
func (s *supervisor) answer() {
	for range s.pings {
		_ = s.current().Send(wire.KindPing, 0, nil) // an error shows on the reading side
	}
}

func failure(err error) wire.Failed {
	out := wire.Failed{Message: err.Error()}
	if missing := (*wire.Missing)(nil); errors.As(err, &missing) {
		out.Wall = missing.Wall
	}
	return out
}

// serve reads what services say.
func (s *supervisor) serve(fail func(error)) error {
	for {
		err := s.current().Serve(s.in, func(m wire.Message) error { return s.handle(m, fail) })
		nonce := s.in.Turned()
		if nonce == nil {
			return err
		}
		if err := s.turn(nonce); err != nil {
			return err
		}
	}
}

// turn goes on with a service that has come. It hears first which cells it has.
func (s *supervisor) turn(nonce []byte) error {
	kept, old, now := s.leave(), s.current(), wire.NewLink(s.out)
	if err := old.Over(nonce); err != nil {
		return err
	}
	if err := now.SendJSON(wire.KindResume, 0, wire.Resumed{Cells: kept, Last: s.last}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = now
	return nil
}

// leave ends all cells but those that are kept, and returns these.
func (s *supervisor) leave() (kept []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, c := range s.cells {
		if c.isKept() {
			kept = append(kept, number)
		} else {
			c.kill()
		}
	}
	return kept
}

func (s *supervisor) current() *wire.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
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
		s.in.Look(setup.Token)
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
	case wire.KindPing:
		select {
		case s.pings <- struct{}{}:
		default: // an answer is under way
		}
		return nil
	case wire.KindCalm:
		go s.calm()
		return nil
	case wire.KindLeave:
		s.left()
		go func() {
			s.calming.Lock() // for good
			_ = s.current().Send(wire.KindLeft, 0, nil)
		}()
		return nil
	case wire.KindWeigh:
		go func() { _ = s.current().SendJSON(wire.KindWeight, 0, s.measure()) }()
		return nil
	}
	s.mu.Lock()
	c := s.cells[m.Cell]
	s.mu.Unlock()
	switch {
	case c == nil: // it has ended meanwhile
		return nil
	case m.Kind == wire.KindKill:
		c.kill()
		return nil
	case m.Kind == wire.KindKeep:
		c.keep()
		return nil
	case m.Kind == wire.KindAttach:
		c.attach()
		return nil
	case m.Kind == wire.KindLook:
		go func() { _ = s.current().SendJSON(wire.KindLooked, m.Cell, wire.Looked{Missing: s.look(c)}) }()
		return nil
	}
	return fmt.Errorf("message %q", rune(m.Kind))
}

func (s *supervisor) setUp(setup wire.Setup, fail func(error)) error {
	filters, err := compile(setup.Seccomp)
	if err != nil {
		return wire.Missed(wire.WallSeccomp, err)
	}
	if s.beside() {
		if err := take(filters.common); err != nil {
			return wire.Missed(wire.WallSeccomp, err)
		}
	}
	groups, err := newGroups(s.folder, setup)
	if err != nil {
		return wire.Missed(wire.WallGroups, err)
	}
	zygote, err := startZygote(setup, filters, groups)
	if err != nil {
		return fmt.Errorf("zygote: %w", err)
	}
	s.mu.Lock()
	s.groups, s.zygote, s.setup = groups, zygote, setup
	s.mu.Unlock()
	go func() { fail(fmt.Errorf("the zygote ended: %w", zygote.serve())) }()
	return s.current().SendJSON(wire.KindUp, 0, wire.Up{Version: wire.Version, Log: zygote.log.String()})
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
