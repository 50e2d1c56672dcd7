package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"notebox/runner"
)

// sessionPrefix is what the name of a container begins with that is a session's. Its
// labels say whose it is, and cannot be changed any more when that is known.
const sessionPrefix = namePrefix + "session-"

var _ runner.Keeper = (*Engine)(nil)

// Keep implements runner.Keeper: it gives the container another name.
func (e *Engine) Keep(ctx context.Context, s runner.Sandbox) (string, error) {
	mine, ok := s.(*sandbox)
	if !ok || mine.engine != e {
		return "", errors.New("keep a sandbox: it is another engine's")
	}
	if strings.HasPrefix(mine.ID(), sessionPrefix) {
		return mine.ID(), nil
	}
	name := sessionPrefix + strings.TrimPrefix(mine.name, namePrefix)
	user, _ := e.looksAfter(mine.name)
	e.look(name, user)
	mine.mu.Lock()
	mine.kept = name // from here on, as the daemon may rename it and not say so
	mine.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := e.api.ContainerRename(ctx, mine.name, name); err != nil {
		return "", e.explain(fmt.Errorf("rename container: %w", err))
	}
	mine.mu.Lock()
	mine.renamed = true
	mine.mu.Unlock()
	return name, nil
}

// Adopt implements runner.Keeper.
func (e *Engine) Adopt(ctx context.Context, name string) (runner.Sandbox, error) {
	if !strings.HasPrefix(name, sessionPrefix) {
		return nil, fmt.Errorf("%w: %q is no session's", runner.ErrNoSandbox, name)
	}
	return e.await(ctx, func() (*sandbox, error) { return e.adopt(ctx, name) }, func(s *sandbox) {
		s.Close()
		e.forget(name)
	})
}

func (e *Engine) adopt(ctx context.Context, name string) (*sandbox, error) {
	if err := e.runs(ctx, name); err != nil {
		return nil, err
	}
	s, err := e.attach(ctx, name, container.WaitConditionNotRunning)
	if err != nil {
		return nil, err
	}
	// One that ended meanwhile would have a stream that never ends.
	if err := e.runs(ctx, name); err != nil {
		s.Close()
		return nil, err
	}
	e.look(name, ids{})
	return s, nil
}

// runs returns runner.ErrNoSandbox unless there is a container of that name that is
// this service's and runs.
func (e *Engine) runs(ctx context.Context, name string) error {
	have, err := e.api.ContainerInspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return runner.ErrNoSandbox
	case err != nil:
		return fmt.Errorf("inspect container: %w", err)
	case have.Config == nil || have.Config.Labels[LabelService] != e.options.ServiceID:
		return fmt.Errorf("%w: it is another service's", runner.ErrNoSandbox)
	case have.State == nil || !have.State.Running || have.State.Paused || have.State.Restarting || have.State.Dead:
		return fmt.Errorf("%w: it does not run", runner.ErrNoSandbox)
	}
	return nil
}
