package conversation_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
	"notebox/runner/runnertest"
)

// fakeNetwork is a runner.Network that has a program for each connection.
type fakeNetwork struct {
	t      *testing.T
	answer func(net.Conn)
	ended  bool // Serve has; read after Run
}

func (n *fakeNetwork) CA() []byte { return []byte("the CA") }

func (n *fakeNetwork) Serve(ctx context.Context, run string, l net.Listener) {
	require.Equal(n.t, "run-1", run)
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		go n.answer(c)
	}
	<-ctx.Done()
	n.ended = true
}

func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

// silent is a connection that nobody reads.
func silent(c net.Conn) { _, _ = c.Write([]byte("x")) }

func onNetwork(t *testing.T, answer func(net.Conn)) (runner.Spec, *fakeNetwork) {
	n := &fakeNetwork{t: t, answer: answer}
	spec := runnertest.NewSpec("x")
	spec.Network = n
	return spec, n
}

func sendChannel(to io.Writer, op byte, id uint32, data string) error {
	return frame.Write(to, frame.KindChannel, append(binary.BigEndian.AppendUint32([]byte{op}, id), data...))
}

// talks is a program whose run has one connection, and puts out what comes back.
func talks(stream runnertest.Stream) int {
	_, _, _ = frame.Read(stream, 0)
	_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
	for {
		kind, payload, err := frame.Read(stream, 0)
		switch {
		case err != nil:
			return 1
		case kind == frame.KindJob:
			job, _ := frame.Decode[frame.Job](kind, payload)
			if job.Network == nil || job.Network.CA != "the CA" {
				return 1
			}
		case kind == frame.KindGo:
			go func() {
				_ = sendChannel(stream, 'o', 1, "")
				_ = sendChannel(stream, 'd', 1, "hello")
				_ = sendChannel(stream, 'e', 1, "")
			}()
		case kind == frame.KindChannel && payload[0] == 'd':
			_ = runnertest.SendText(stream, string(payload[5:]))
		case kind == frame.KindChannel && payload[0] == 'e':
			runnertest.SendOutcome(stream, runner.StatusOK)
			_ = frame.WriteJSON(stream, frame.KindDone, frame.Done{Collected: true})
			_, _ = io.Copy(io.Discard, stream)
			return 0
		}
	}
}

func TestNetwork(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		spec, n := onNetwork(t, echo)
		r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, talks), spec, &runnertest.Recorder{})
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusOK, r.Out.Status)
		require.Contains(t, string(r.Sink.Events()[0].Output), "hello")
		require.True(t, n.ended, "Run has waited for it")
	})
}

// TestNetworkIsNoOneElsesWait: a connection that is not read, and one that never ends,
// hold up neither outputs nor the end of the run.
func TestNetworkIsNoOneElsesWait(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		spec, n := onNetwork(t, silent)
		r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
			_ = sendChannel(to, 'o', 1, "")
			for range channel.Window / (64 << 10) {
				_ = sendChannel(to, 'd', 1, strings.Repeat("x", 64<<10))
			}
			_ = runnertest.SendText(to, "after")
			runnertest.SendOutcome(to, runner.StatusOK)
			_ = frame.WriteJSON(to, frame.KindDone, frame.Done{Collected: true})
			return runnertest.Stays
		})), spec, &runnertest.Recorder{})
		require.NoError(t, r.Err)
		require.Contains(t, string(r.Sink.Events()[0].Output), "after")
		require.Zero(t, r.Took)
		require.True(t, n.ended)
	})
}

func TestNetworkOfAHostileSandbox(t *testing.T) {
	opens := func(to io.Writer) error { return sendChannel(to, 'o', 1, "") }
	for _, c := range []struct {
		desc   string
		script func(to io.Writer)
		none   bool // the run has no network
		err    string
	}{
		{"not granted", func(to io.Writer) { _ = opens(to) }, true, "a channel where there is no network"},
		{"no payload", func(to io.Writer) { _ = frame.Write(to, frame.KindChannel, nil) }, false, "a payload of 0 bytes"},
		{"a channel that is none", func(to io.Writer) { _ = sendChannel(to, 'd', 7, "x") }, false, "never open"},
		{"endless channels", func(to io.Writer) {
			for i := uint32(1); sendChannel(to, 'o', i, "") == nil; i++ {
				continue
			}
		}, false, "more than 64"},
		{"endless data", func(to io.Writer) {
			for err := opens(to); err == nil; {
				err = sendChannel(to, 'd', 1, strings.Repeat("x", 1000))
			}
		}, false, "more data than there is room for"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				spec, n := onNetwork(t, silent)
				if c.none {
					spec.Network = nil
				}
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
					c.script(to)
					return runnertest.Stays
				})), spec, &runnertest.Recorder{})
				require.ErrorContains(t, r.Err, c.err)
				require.Equal(t, !c.none, n.ended)
			})
		})
	}
	t.Run("after the outcome", func(t *testing.T) {
		runnertest.InBubble(t, func(t *testing.T) {
			spec, n := onNetwork(t, silent)
			r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
				runnertest.SendOutcome(to, runner.StatusOK)
				_ = opens(to)
				return runnertest.Stays
			})), spec, &runnertest.Recorder{})
			require.NoError(t, r.Err)
			require.Equal(t, []runner.Skipped{cutOff}, r.Out.Skipped)
			require.True(t, n.ended)
		})
	})
}

// TestNetworkToADeafSandbox: what it does not read holds up nobody beyond the run.
func TestNetworkToADeafSandbox(t *testing.T) {
	for _, c := range []struct {
		desc    string
		outcome bool
		status  runner.Status
	}{
		{"until its time is over", false, runner.StatusTimeout},
		{"after its outcome", true, runner.StatusOK},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				flood := func(conn net.Conn) {
					for data := make([]byte, 1000); ; {
						if _, err := conn.Write(data); err != nil {
							return
						}
					}
				}
				spec, n := onNetwork(t, flood)
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, func(stream runnertest.Stream) int {
					_, _, _ = frame.Read(stream, 0)
					_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
					for kind := frame.Kind(0); kind != frame.KindGo; {
						var err error
						if kind, _, err = frame.Read(stream, 0); err != nil {
							return 1
						}
					}
					_ = sendChannel(stream, 'o', 1, "")
					if c.outcome {
						runnertest.SendOutcome(stream, runner.StatusOK)
						_ = frame.WriteJSON(stream, frame.KindDone, frame.Done{Collected: true})
					}
					<-stream.Closed
					return 1
				}), spec, &runnertest.Recorder{})
				require.NoError(t, r.Err)
				require.Equal(t, c.status, r.Out.Status)
				require.True(t, n.ended)
			})
		})
	}
}

func TestNetworkEndsWithACancelledRun(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		spec, n := onNetwork(t, func(c net.Conn) {
			cancel()
			_, err := c.Read(make([]byte, 1))
			ended <- err
		})
		r := runnertest.RunOn(ctx, t, runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
			_ = sendChannel(to, 'o', 1, "")
			return runnertest.Stays
		})), spec, &runnertest.Recorder{})
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusCancelled, r.Out.Status)
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.True(t, n.ended)
	})
}
