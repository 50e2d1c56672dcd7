package conversation

import (
	"context"
	"errors"
	"time"

	"notebox/runner"
	"notebox/runner/internal/channel"
)

// hangUpTimeout is how long a sandbox that has ended its run may take to read
// what was under way to it.
const hangUpTimeout = 2 * time.Second

// uplink is the network of one run while its cells run, or of a session while that is
// open; nil if there is none.
type uplink struct {
	c      *Conversation
	mux    *channel.Mux
	hangUp context.CancelFunc
	ended  chan struct{} // Serve has
}

// connect begins to serve the connections of a run or a session, whose id is given, until
// ctx ends.
func connect(ctx context.Context, c *Conversation, network runner.Network, id string) *uplink {
	u := &uplink{c: c, mux: channel.NewMux(c.sendChannel), ended: make(chan struct{})}
	ctx, u.hangUp = context.WithCancel(ctx)
	go func() {
		defer close(u.ended)
		defer context.AfterFunc(ctx, func() { u.mux.Close() })()
		network.Serve(ctx, id, u.mux)
	}()
	return u
}

// receive takes the payload of one frame, and does not wait.
func (u *uplink) receive(payload []byte) error {
	if u == nil {
		return errors.New("a channel where there is no network")
	}
	return u.mux.Receive(payload)
}

// close ends all connections, and does not wait.
func (u *uplink) close() {
	if u != nil {
		u.hangUp()
		u.mux.Close()
	}
}

// wait returns when nothing of a closed uplink goes on. What the sandbox does not
// read is not waited for: it is closed then.
func (u *uplink) wait() {
	if u == nil {
		return
	}
	select {
	case <-u.ended:
		return
	case <-time.After(hangUpTimeout):
		u.c.Sandbox.Close()
	}
	<-u.ended
}
