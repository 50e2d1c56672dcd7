package storage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"gocloud.dev/gcerrors"
)

const (
	// retryFor is how long one Put tries anew: a store that is restarted, or that moves
	// to another machine, is back within it, and a caller waits no longer.
	retryFor = 10 * time.Second
	// retryFirst is the first pause; each is twice the one before, up to retryMost.
	retryFirst = 200 * time.Millisecond
	retryMost  = 2 * time.Second
	// retrySpread is by how much a pause is longer or shorter, as a part of it.
	retrySpread = 0.5
)

// Temporary reports whether err, of a Store's method, is about the store's connection or
// its load, so that the same call may succeed later. It is false for what a person has to
// mend first: credentials, a missing container, a full disk.
func Temporary(err error) bool {
	var lookup *net.DNSError // gocloud takes it for an object that is not found
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &lookup), errors.Is(err, context.DeadlineExceeded):
		return true
	}
	switch gcerrors.Code(err) {
	case gcerrors.DeadlineExceeded, gcerrors.ResourceExhausted:
		return true
	case gcerrors.Unknown: // most of what drivers do not know is of the network
	default:
		return false
	}
	if status := max(azureStatus(err), s3Status(err), gcsStatus(err)); status != 0 {
		return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
	var network net.Error // a *url.Error is one too
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Timeout() || errno.Temporary() || temporaryErrnos[errno]
	case errors.As(err, &network):
		return true
	}
	return false
}

// temporaryErrnos are those of a peer that is not there now.
var temporaryErrnos = map[syscall.Errno]bool{
	syscall.ECONNREFUSED: true,
	syscall.ECONNRESET:   true,
	syscall.ECONNABORTED: true,
	syscall.EPIPE:        true,
	syscall.EHOSTUNREACH: true,
	syscall.ENETUNREACH:  true,
	syscall.EHOSTDOWN:    true,
	syscall.ENETDOWN:     true,
	syscall.ESTALE:       true, // NFS, whose server was restarted
}

// again calls try until it succeeds, or fails with backoff.Permanent, or the time is over,
// or ctx ends. Many runs meet an outage at the same moment: the pauses are spread, so that
// the runs do not all come back at the same moment too.
func again[T any](ctx context.Context, try func() (T, error)) (T, error) {
	pauses := &backoff.ExponentialBackOff{InitialInterval: retryFirst, RandomizationFactor: retrySpread, Multiplier: 2, MaxInterval: retryMost}
	return backoff.Retry(ctx, try, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(retryFor))
}

// source is what a Put reads, which it can tell from the store as the one that failed,
// and read again from where it stood if it is an io.Seeker.
type source struct {
	io.Reader
	start  int64
	seeker io.Seeker // nil if the content comes once
	failed bool
}

func newSource(content io.Reader) *source {
	s := &source{Reader: content}
	if seeker, ok := content.(io.Seeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			s.start, s.seeker = start, seeker
		}
	}
	return s
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = s.failed || err != nil && err != io.EOF
	return n, err
}

// rewind reports whether the content can be read once more, and goes to its start.
func (s *source) rewind() bool {
	if s.failed || s.seeker == nil {
		return false
	}
	_, err := s.seeker.Seek(s.start, io.SeekStart)
	return err == nil
}
