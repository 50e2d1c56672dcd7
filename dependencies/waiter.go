package dependencies

import (
	"context"
	"errors"

	"notebox/runner"
)

// waiter is a request that waits.
type waiter struct {
	text func(string)
	over bool // under telling
}

// join waits for the installation of a set, and begins it if nobody has. Whoever began it
// may have found no place to wait for a sandbox. A request that joined may still find one,
// so it begins again, once.
func (l *Layers) join(ctx context.Context, key string, r Request) (*Layer, error) {
	layer, began, err := l.wait(ctx, key, r)
	if !began && turnedAway(err) {
		layer, _, err = l.wait(ctx, key, r)
	}
	return layer, err
}

// turnedAway reports whether an installation had no place. That there is no room for its
// layer is the same for everybody.
func turnedAway(err error) bool {
	e := (*runner.Error)(nil)
	return errors.As(err, &e) && (e.Code == runner.CodeShare || e.Code == runner.CodeFull) && !errors.Is(err, errNoRoom)
}

// wait waits once, and says whether it began what it waited for.
func (l *Layers) wait(ctx context.Context, key string, r Request) (found *Layer, began bool, err error) {
	w := &waiter{text: r.Text}
	l.mu.Lock()
	for l.names[key] != nil { // it came to be in between
		l.mu.Unlock()
		if found := l.known(ctx, key, r); found != nil {
			l.options.Observe(resultCached)
			return found, true, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, true, err
		}
		l.mu.Lock()
	}
	in := l.under[key]
	if began = in == nil; began {
		in = &install{done: make(chan struct{}), waiters: map[*waiter]bool{}}
		in.ctx, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
		l.under[key] = in
		l.work.Go(func() { l.install(in, key, r) })
	}
	in.waiters[w] = true
	l.mu.Unlock()

	select {
	case <-in.done:
	case <-ctx.Done():
		l.leave(in, key, w)
		return nil, began, ctx.Err()
	}
	w.hush(in)
	if in.err != nil {
		return nil, began, in.err
	}
	return l.give(in.layer, r, false, in.took), began, nil
}

// leave ends a wait. An installation that nobody waits for is cancelled, and who asks then
// begins another.
func (l *Layers) leave(in *install, key string, w *waiter) {
	w.hush(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-in.done: // at this moment
		if in.layer != nil {
			in.layer.users--
		}
		return
	default:
	}
	if delete(in.waiters, w); len(in.waiters) == 0 {
		in.cancel()
		if l.under[key] == in {
			delete(l.under, key)
		}
	}
}

// hush returns when the waiter hears no more.
func (w *waiter) hush(in *install) {
	in.telling.Lock()
	defer in.telling.Unlock()
	w.over = true
}

// tell passes on what the installer says, to those who wait now.
func (l *Layers) tell(in *install, text string) {
	l.mu.Lock()
	all := make([]*waiter, 0, len(in.waiters))
	for w := range in.waiters {
		all = append(all, w)
	}
	l.mu.Unlock()
	in.telling.Lock()
	defer in.telling.Unlock()
	for _, w := range all {
		if w.text != nil && !w.over {
			w.text(text)
		}
	}
}
