package runner

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
)

// hangUpTimeout is how long a sandbox that has ended its run may take to read
// what was under way to it.
const hangUpTimeout = 2 * time.Second

// errNoNetwork is the cause where a sandbox used a network that it was not given.
var errNoNetwork = errors.New("a channel where there is no network")

// Network is what the programs in a sandbox reach through its proxy.
type Network interface {
	// Serve answers the connections of one run, which are an HTTP proxy's, until
	// ctx ends or Accept fails. It returns when nothing of it goes on. The connections have the
	// methods CloseWrite and Reset beside those of net.Conn.
	Serve(ctx context.Context, run string, connections net.Listener)
	// CA returns certificates in PEM, which programs in the sandbox are to trust
	// beside those of its image; may be nil.
	CA() []byte
}

// uplink is the network of one run while its cells run, or of a session while that is
// open; nil where there is none.
type uplink struct {
	c      *conversation
	mux    *channel.Mux
	hangUp context.CancelFunc
	ended  chan struct{} // Serve has
}

// connect begins to serve the connections of a run or a session, whose id is given.
func connect(ctx context.Context, c *conversation, network Network, id string) *uplink {
	if network == nil {
		return nil
	}
	u := &uplink{c: c, ended: make(chan struct{})}
	u.mux = channel.NewMux(func(payload []byte) error {
		return c.write(func(w io.Writer) error { return frame.Write(w, frame.KindChannel, payload) })
	})
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
		return errNoNetwork
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
		u.c.sandbox.Close()
	}
	<-u.ended
}
