package runnertest

import (
	"bytes"
	"errors"
	"io"
)

// errAdopted is that a session's token came.
var errAdopted = errors.New("another service has come")

// tokenReader looks for a token in all that is read. What follows it comes after
// errAdopted.
type tokenReader struct {
	r     io.Reader
	token []byte
	tail  []byte // the last bytes that were read, fewer than the token has
	rest  []byte // that was read behind a token
}

// Read implements io.Reader.
func (t *tokenReader) Read(p []byte) (int, error) {
	n, err := 0, error(nil)
	if len(t.rest) > 0 {
		n = copy(p, t.rest)
		t.rest = t.rest[n:]
	} else {
		n, err = t.r.Read(p)
	}
	seen := append(t.tail, p[:n]...)
	if _, behind, found := bytes.Cut(seen, t.token); found {
		t.rest = append(bytes.Clone(behind), t.rest...)
		t.tail = nil
		return 0, errAdopted
	}
	t.tail = bytes.Clone(seen[max(0, len(seen)-len(t.token)+1):])
	return n, err
}
