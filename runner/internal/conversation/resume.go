package conversation

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// maxStale is how many bytes of what an adopted sandbox was sending are passed over. It may
// send so much, of files for example, until it has read the token.
const maxStale = 1 << 30

// errStale is that no nonce came within maxStale.
var errStale = errors.New("the sandbox goes on with what was before")

// resume begins anew with a session's sandbox after a new stream was attached, in the
// middle of whatever both sides were sending: see package frame. The end of
// ctx closes the stream. What is read after it are frames.
func resume(ctx context.Context, s runner.Sandbox, token []byte) (frame.Resumed, error) {
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	nonce := make([]byte, frame.TokenSize)
	_, _ = rand.Read(nonce) // never fails
	sent := make(chan error, 1)
	go func() { // meanwhile, as the sandbox may have to send before it reads
		_, err := s.Write(append(bytes.Clone(token), nonce...))
		sent <- err
	}()
	r, err := readResumed(s, nonce)
	if err != nil {
		s.Close() // ends the sending
	}
	if sending := <-sent; err == nil {
		err = sending
	}
	if ctx.Err() != nil {
		return frame.Resumed{}, ErrDeadline
	}
	return r, err
}

func readResumed(s io.Reader, nonce []byte) (frame.Resumed, error) {
	if err := skipTo(s, nonce, maxStale); err != nil {
		return frame.Resumed{}, err
	}
	kind, payload, err := frame.Read(s, 0)
	switch {
	case err != nil:
		return frame.Resumed{}, err
	case kind == frame.KindFailed:
		return frame.Resumed{}, failureOfRun(payload)
	case kind != frame.KindResumed:
		return frame.Resumed{}, fmt.Errorf("frame %q instead of resumed", rune(kind))
	}
	r, err := frame.Decode[frame.Resumed](kind, payload)
	if err == nil && r.Version != frame.Version {
		err = fmt.Errorf("the sandbox speaks version %d, not %d", r.Version, frame.Version)
	}
	return r, err
}

// skipTo reads up to the end of the mark if that comes first, and not a byte beyond
// it. It is errStale if that is not within limit bytes.
func skipTo(r io.Reader, mark []byte, limit int64) error {
	last, have := make([]byte, len(mark)), 0 // what was read last, as far as it begins the mark
	for have < len(mark) {
		n, err := r.Read(last[have:])
		if limit -= int64(n); limit < 0 {
			return errStale
		}
		from, to := 0, have+n
		for !bytes.HasPrefix(mark, last[from:to]) {
			from++
		}
		have = copy(last, last[from:to])
		if err != nil && have < len(mark) {
			return err
		}
	}
	return nil
}
