// Package tail keeps the last words of a program: of a worker's cells, and of a container.
package tail

import "sync"

// Size is how much is kept, bytes: a Python traceback.
const Size = 8 << 10

// Tail is an io.Writer that keeps the last Size bytes. The zero value is empty. It may be
// written to and read at one time.
type Tail struct {
	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - Size; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// String is what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
