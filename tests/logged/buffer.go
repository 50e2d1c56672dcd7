// Package logged has the log of a test: the code under test writes it from any goroutine,
// and the test reads it meanwhile.
package logged

import (
	"bytes"
	"sync"
)

// Buffer is an io.Writer that keeps what was written. Its zero value is empty.
type Buffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer. It does not fail.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// String is all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
