package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"

	"notebox/runner"
	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
)

// Keep makes the sandbox a session's, whose programs reach a network, which may be nil, in
// the name of id. The end of ctx ends the conversation.
func (c *Conversation) Keep(ctx context.Context, hello frame.Session, network runner.Network, id string) error {
	stop := context.AfterFunc(ctx, func() { c.Close(context.Cause(ctx)) })
	defer stop()
	c.become(network, id)
	if hello.Env == nil {
		hello.Env = map[string]string{}
	}
	hello.Network = grant(network)
	err := c.ask(ctx, frame.KindKept, func(w io.Writer) error { return frame.WriteJSON(w, frame.KindSession, hello) })
	switch exit := (*runner.ExitError)(nil); {
	case errors.As(err, &exit) && c.waited:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, ErrDeadline):
		return unavailable("starting a session took too long", err)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	}
	return NotStarted(err)
}

// Resume goes on with the sandbox of a session, whose token this is. Nothing is read
// after it until Serve is called.
func (c *Conversation) Resume(ctx context.Context, token []byte) (frame.Resumed, error) {
	return resume(ctx, c.Sandbox, token)
}

// Serve begins to read after Resume; network and id are those of Keep.
func (c *Conversation) Serve(network runner.Network, id string) {
	c.become(network, id)
	c.listen()
}

// become has the conversation be a session's.
func (c *Conversation) become(network runner.Network, id string) {
	c.writing.Lock()
	c.session = true
	c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	c.serve(c.alive, network, id)
}

// grant is what a sandbox is told of a network.
func grant(network runner.Network) *frame.Network {
	if network == nil {
		return nil
	}
	return &frame.Network{CA: string(network.CA())}
}

// Interrupt sends SIGINT to what runs.
func (c *Conversation) Interrupt() error { return c.send(frame.KindInterrupt) }

// Restart has the session's sandbox start another kernel, and returns when that is up.
func (c *Conversation) Restart(ctx context.Context) error {
	return c.ask(ctx, frame.KindRestarted, func(w io.Writer) error { return frame.Write(w, frame.KindRestart, nil) })
}

// OpenFile opens a channel for a file operation.
func (c *Conversation) OpenFile() (*channel.Conn, error) { return c.files.Open() }

// Wait returns when nothing of the network of a conversation that is over goes on.
func (c *Conversation) Wait() {
	c.mu.Lock()
	network := c.network
	c.mu.Unlock()
	network.wait()
}
