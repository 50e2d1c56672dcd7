package conversation

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// FuzzReady has a sandbox send any bytes before it has a job, and end. What it says is in
// no message that a stranger may read.
func FuzzReady(f *testing.F) {
	f.Add(fuzzFrame(frame.KindReady, `{"version":1}`), 0)
	f.Add(fuzzFrame(frame.KindReady, `{"version":2}`), 0)
	f.Add(fuzzFrame(frame.KindFailed, `{"message":"/etc/passwd","env":true}`), 1)
	f.Add(fuzzFrame(frame.KindFailed, `[]`), 137)
	f.Add(append(fuzzFrame(frame.KindReady, `{"version":1}`), fuzzFrame(frame.KindFailed, `{"message":"x"}`)...), 1)
	f.Add([]byte{1, 'R', 0xff, 0xff, 0xff, 0xff}, 0)
	sending := errors.New("broken pipe")
	f.Fuzz(func(t *testing.T, raw []byte, code int) {
		c := New(&fuzzSandbox{Reader: bytes.NewReader(raw), code: code}, slog.New(slog.DiscardHandler))
		requirePublic(t, c.readReady(nil))
		go c.read()
		requirePublic(t, c.whyNotSent(sending))
	})
}

func requirePublic(t *testing.T, err error) {
	t.Helper()
	var public *runner.Error
	if errors.As(err, &public) {
		require.Equal(t, "the kernel does not start with these variables", public.Message)
	}
}
