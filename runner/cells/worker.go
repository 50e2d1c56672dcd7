package cells

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
)

const (
	// startTimeout bounds a worker's start: a container, and all libraries.
	startTimeout = 60 * time.Second
	// retryAfter is when those come back whose worker is gone: the next one is up by then.
	retryAfter = 5 * time.Second
	// idsEach are how many ids a cell has: its code has the first, and those children of its
	// harness that the code must not reach the next.
	idsEach = 2
)

// errRetired is that a worker takes no cells any more: the next one does.
var errRetired = errors.New("cells: the worker takes no cells")

// errStandsStill is why a silent worker is removed.
var errStandsStill = fmt.Errorf("it has said nothing for %v", wire.StandsStill)

// worker is a container with cells in it.
type worker struct {
	sandbox runner.Sandbox
	walls   runner.Walls
	link    *wire.Link
	late    func() // a cell takes long to begin
	others  *others
	log     *slog.Logger
	ended   chan struct{} // closed when its stream has ended

	heard   atomic.Bool   // it has said something since the last look
	answers atomic.Bool   // it answers pings
	still   atomic.Bool   // it says nothing any more
	removed atomic.Bool   // by this side
	left    chan struct{} // closed when no cell of it may stand still any more
	onLeft  func()        // closes it

	// inherited is that an earlier process has started it, for cells that were kept.
	inherited bool

	mu      sync.Mutex
	begun   time.Time // its first cell
	used    time.Time // it had a cell last
	weighed time.Time // it was asked for its weight
	weight  wire.Measured
	cells   map[uint32]*cell
	last    uint32        // number of a cell
	why     error         // it has ended
	sick    bool          // it makes no cells any more
	retired chan struct{} // not nil: closed when no cell is left
}

// startWorker returns when cells can be opened. forget is called when it has ended; lost says
// that nobody has asked for that.
func startWorker(ctx context.Context, host runner.Host, env runner.Environment, o Options, forget func(lost bool)) (*worker, error) {
	sandbox, token, walls, err := host.StartWorker(ctx, env)
	if err != nil {
		return nil, err
	}
	w := newWorker(sandbox, o)
	w.walls = walls
	up := make(chan struct{})
	go w.serve(sync.OnceFunc(func() { close(up) }), forget)
	var modules []string
	if env.Kernel.Spec() == runner.PythonKernel {
		modules = o.Modules(env.Name)
	}
	err = w.link.SendJSON(wire.KindSetup, 0, wire.Setup{
		Name: sandbox.ID(), Token: token, Kernel: env.Kernel.Spec(), Modules: modules, FirstUser: walls.FirstUser, Users: walls.Users,
		Memory: walls.Memory, Pids: walls.Pids, Masked: walls.Masked, ReadOnly: walls.ReadOnly, Sysctls: walls.Sysctls, Seccomp: walls.Seccomp,
	})
	if err == nil {
		err = w.await(ctx, up)
	}
	if err != nil {
		return nil, errors.Join(err, w.remove())
	}
	go w.watch(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), wire.PingInterval)
		defer cancel()
		err := host.Ready(ctx, env)
		return err == nil || errors.Is(err, runner.ErrNoImage)
	})
	return w, nil
}

func newWorker(sandbox runner.Sandbox, o Options) *worker {
	w := &worker{sandbox: sandbox, link: wire.NewLink(sandbox), late: o.late, others: o.others, log: o.Log, ended: make(chan struct{}), left: make(chan struct{}), used: time.Now(), cells: map[uint32]*cell{}}
	w.onLeft = sync.OnceFunc(func() { close(w.left) })
	return w
}

// attachWorker comes to a worker of an earlier process. It takes no new cells, and nobody watches
// whether it stands still: its cells are sessions, which are ended by their own times.
func attachWorker(ctx context.Context, host runner.Host, id string, o Options, forget func(lost bool)) (*worker, error) {
	sandbox, token, err := host.AttachWorker(ctx, id)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { sandbox.Close() })
	defer stop()
	nonce := make([]byte, wire.TokenSize)
	_, _ = rand.Read(nonce)
	if err := wire.Turn(sandbox, token, nonce); err != nil {
		sandbox.Close()
		if errors.As(err, new(*runner.ExitError)) { // it was being removed
			return nil, fmt.Errorf("%w: its worker has ended", runner.ErrNoSandbox)
		}
		return nil, unavailable("a sandbox's worker does not answer", err)
	}
	w := newWorker(sandbox, o)
	w.inherited, w.retired = true, make(chan struct{})
	resumed := make(chan struct{})
	go w.serve(sync.OnceFunc(func() { close(resumed) }), forget)
	if err := w.await(ctx, resumed); err != nil {
		sandbox.Close()
		return nil, err
	}
	go w.awaitLast()
	return w, nil
}

// await returns when the worker has said that it is up, which may take it longer than it bears
// silence.
func (w *worker) await(ctx context.Context, up <-chan struct{}) error {
	go w.ping()
	select {
	case <-up:
		return nil
	case <-w.ended:
		return w.failure()
	case <-ctx.Done():
		return unavailable("starting a sandbox took too long", ctx.Err())
	}
}

// serve reads the stream to its end, which is the end of all cells. up is called when the worker
// says that it is up, which may be more than once.
func (w *worker) serve(up func(), forget func(lost bool)) {
	err := w.link.Serve(heardReader{w.sandbox, w}, func(m wire.Message) error { return w.handle(m, up) })
	if exit := (*runner.ExitError)(nil); w.still.Load() {
		err = errStandsStill
	} else if errors.As(err, &exit) {
		// As text: the end of a worker is not that of the program in a cell.
		err = fmt.Errorf("exit code %d: %s", exit.Code, exit.Log)
	}
	why := workerEnded(err)
	w.mu.Lock()
	w.why = why
	cells := w.cells
	w.cells = map[uint32]*cell{}
	w.mu.Unlock()
	lost := !w.removed.Load()
	if lost {
		w.log.Warn("a worker of cells has ended", "worker", w.sandbox.ID(), "cells", len(cells), "error", err)
	}
	forget(lost) // before who had a cell in it asks for another
	close(w.ended)
	kept := false
	for _, c := range cells {
		kept = kept || c.kept.Load()
		c.current().End(why)
		c.leave(nil) // what there is of it ends with its worker, or is the next process's
	}
	if (kept || w.inherited) && !w.still.Load() { // another process may have come to it; one that has ended is removed by its end
		w.sandbox.Close()
		return
	}
	if err := w.remove(); err != nil {
		w.log.Warn("a worker of cells could not be removed", "worker", w.sandbox.ID(), "error", err)
	}
}

// all are the cells that there are.
func (w *worker) all() []*cell {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.cells))
}

// close leaves a worker that has kept cells to the next process, and removes another.
func (w *worker) close() error {
	if !slices.ContainsFunc(w.all(), func(c *cell) bool { return c.kept.Load() }) {
		return w.remove()
	}
	w.removed.Store(true)
	return w.sandbox.Close()
}

// leaveTime bounds the wait for a worker that is about to be removed and has cells stand still.
const leaveTime = time.Second

// remove removes the container, and with it all cells.
func (w *worker) remove() error {
	w.removed.Store(true)
	if len(w.all()) > 0 {
		go func() { _ = w.link.Send(wire.KindLeave, 0, nil) }() // one that reads nothing is waited for no longer
		select {
		case <-w.left:
		case <-w.ended:
		case <-time.After(leaveTime):
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return w.sandbox.Kill(ctx)
}

func (w *worker) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

func (w *worker) handle(m wire.Message, up func()) error {
	switch m.Kind {
	case wire.KindPing:
		w.answers.Store(true)
		return nil
	case wire.KindLate:
		go w.late()
		return nil
	case wire.KindLeft:
		w.onLeft()
		return nil
	case wire.KindUp:
		u, err := wire.Decode[wire.Up](m)
		if err == nil && u.Version != wire.Version {
			err = fmt.Errorf("the worker speaks version %d, not %d", u.Version, wire.Version)
		}
		if err != nil {
			return err
		}
		if u.Log != "" {
			w.log.Warn("a worker of cells has imported with complaints", "worker", w.sandbox.ID(), "log", u.Log)
		}
		up()
		return nil
	case wire.KindResume:
		resumed, err := wire.Decode[wire.Resumed](m)
		if err != nil {
			return err
		}
		w.mu.Lock()
		for _, number := range resumed.Cells {
			c := newCell(w, number)
			c.kept.Store(true)
			c.inherited = true
			c.stream.End(errNotAdopted)
			w.cells[number] = c
		}
		w.mu.Unlock()
		up()
		return nil
	case wire.KindKept, wire.KindHere, wire.KindLooked:
		if c := w.cell(m.Cell); c != nil {
			c.answered(m)
		}
		return nil
	case wire.KindWeight:
		weight, err := wire.Decode[wire.Measured](m)
		w.mu.Lock()
		w.weight = weight
		w.mu.Unlock()
		return err
	case wire.KindFailed:
		failed, err := wire.Decode[wire.Failed](m)
		switch {
		case err != nil:
			return err
		case failed.Wall != "":
			return &wire.Missing{Wall: failed.Wall, Why: failed.Message}
		}
		return errors.New(failed.Message)
	case wire.KindEnded:
		ended, err := wire.Decode[wire.Ended](m)
		if err != nil {
			return err
		}
		var why error = &runner.ExitError{Code: ended.Code, Log: ended.Log}
		switch {
		case ended.Unborn:
			w.sicken(ended.Log)
			why = unavailable("a sandbox could not be started", fmt.Errorf("%w: %s", runner.ErrWithOthers, ended.Log))
		case ended.Code < 0: // without its last words, which may quote what is the user's
			why = workerEnded(errors.New("the zygote did not tell how the cell ended"))
		}
		if c := w.cell(m.Cell); c != nil {
			c.current().End(why)
		}
		return nil
	case wire.KindGone:
		gone, err := wire.Decode[wire.Gone](m)
		if err != nil {
			return err
		}
		c := w.cell(m.Cell)
		if c == nil { // an earlier process's
			return nil
		}
		w.mu.Lock()
		delete(w.cells, m.Cell)
		w.used = time.Now()
		if w.retired != nil && len(w.cells) == 0 {
			select {
			case <-w.retired:
			default:
				close(w.retired)
			}
		}
		w.mu.Unlock()
		if gone.Error != "" {
			err = errors.New(gone.Error)
		}
		c.leave(err)
		return nil
	}
	return fmt.Errorf("message %q", rune(m.Kind))
}

// sicken has the worker take no cells any more. Those that it has go on.
func (w *worker) sicken(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sick {
		w.sick = true
		w.log.Warn("a worker makes no cells any more; another takes its place", "worker", w.sandbox.ID(), "error", why)
	}
}

func (w *worker) isSick() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sick
}

// worn reports whether a worker has served its time.
func (w *worker) worn(o Options) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.last) >= o.Runs || !w.begun.IsZero() && time.Since(w.begun) >= o.Age
}

// idle is how long there has been no cell.
func (w *worker) idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cells) > 0 {
		return 0
	}
	return time.Since(w.used)
}

// retire removes a worker that takes no cells any more, when its last one is gone.
func (w *worker) retire() {
	w.mu.Lock()
	w.retired = make(chan struct{})
	w.mu.Unlock()
	w.awaitLast()
}

func (w *worker) awaitLast() {
	w.mu.Lock()
	last := w.retired
	if len(w.cells) == 0 {
		select {
		case <-last:
		default:
			close(last)
		}
	}
	w.mu.Unlock()
	select {
	case <-last:
	case <-w.ended: // serve sees to the rest
		return
	}
	if err := w.remove(); err != nil {
		w.log.Warn("a worker of cells could not be removed", "worker", w.sandbox.ID(), "error", err)
	}
}

func (w *worker) cell(number uint32) *cell {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cells[number]
}

// heardReader notes that a worker says something.
type heardReader struct {
	io.Reader
	w *worker
}

func (r heardReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.w.heard.Store(true)
	return n, err
}

// ping pings the worker to its end.
func (w *worker) ping() {
	w.each(wire.PingInterval, func() bool {
		_ = w.link.Send(wire.KindPing, 0, nil) // an error shows on the reading side
		return true
	})
}

// watch ends a worker that answers pings, and then says nothing while its host answers. It counts
// looks, not time: if this process itself was stopped, it blames no worker.
func (w *worker) watch(hostAnswers func() bool) {
	const most = int(wire.StandsStill / wire.PingInterval)
	silent := 0
	w.each(wire.PingInterval, func() bool {
		if silent++; w.heard.Swap(false) || !w.answers.Load() || !hostAnswers() {
			silent = 0
		}
		if silent == most {
			w.still.Store(true)
			w.sandbox.Close() // who reads it or writes to it goes on; serve does the rest
		}
		return silent < most
	})
}

// each calls f at once and in intervals, until f says no or the worker has ended.
func (w *worker) each(interval time.Duration, f func() bool) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for f() {
		select {
		case <-w.ended:
			return
		case <-tick.C:
		}
	}
}

// open opens a cell with these limits.
func (w *worker) open(ctx context.Context, l runner.Limits) (*cell, error) {
	w.mu.Lock()
	switch {
	case w.why != nil: // its end is about to be known
		w.mu.Unlock()
		<-w.ended
		return nil, errRetired
	case w.retired != nil: // meanwhile
		w.mu.Unlock()
		return nil, errRetired
	}
	if err := ctx.Err(); err != nil {
		w.mu.Unlock()
		return nil, unavailable("starting a sandbox took too long", err)
	}
	number, free := w.next()
	if !free {
		w.mu.Unlock()
		return nil, unavailable("no user for a sandbox is free", errors.New("cells have all that their worker has"))
	}
	c := newCell(w, number)
	w.cells[number] = c
	if w.begun.IsZero() {
		w.begun = time.Now()
	}
	// In the order of their numbers; the supervisor reads at all times.
	err := w.link.SendJSON(wire.KindOpen, c.number, wire.Open{
		Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids, Mounts: w.walls.Mounts(l, w.user(c.number)),
	})
	w.mu.Unlock()
	if err != nil {
		return nil, workerEnded(err)
	}
	return c, nil
}

// isFull reports whether cells have all ids that there are for them.
func (w *worker) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.cells) >= w.room()
}

// next takes the next number whose ids no cell has that is there. The lock is held.
func (w *worker) next() (number uint32, free bool) {
	taken := map[int]bool{}
	for number := range w.cells {
		taken[w.user(number)] = true
	}
	for range w.room() {
		w.last++
		if !taken[w.user(w.last)] {
			return w.last, true
		}
	}
	return 0, false
}

// room is how many cells there are ids for.
func (w *worker) room() int { return (w.walls.Users - wire.ZygoteIDs) / idsEach }

// user returns the first id of a cell: each in turn, so that none is used again soon.
func (w *worker) user(number uint32) int {
	return w.walls.FirstUser + wire.ZygoteIDs + idsEach*(int(number)%w.room())
}

// workerEnded is the end of a worker, for those who have a cell in it.
func workerEnded(err error) error {
	return unavailable("the sandbox's worker has ended", fmt.Errorf("%w: %w", runner.ErrWithOthers, err))
}

func unavailable(message string, err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: message, RetryAfter: retryAfter, Err: err}
}
