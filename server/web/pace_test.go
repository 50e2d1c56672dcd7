package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLeastRateGrows: a reply may not be read as slowly, for its size, as a small answer.
func TestLeastRateGrows(t *testing.T) {
	for _, c := range []struct {
		desc string
		size int
		rate int64 // bytes a second that the client reads
		cut  bool
		most time.Duration
	}{
		{"a small answer, slowly", 64 << 10, 3 << 10, false, 30 * time.Second},
		{"a large reply, slowly", 8 << 20, 3 << 10, true, time.Minute},
		{"a large reply at a bad line's rate", 8 << 20, 20 << 10, false, 8 * time.Minute},
		{"a large reply that is not read", 8 << 20, 1, true, 31 * time.Second},
	} {
		t.Run(c.desc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &slowClient{ResponseWriter: httptest.NewRecorder(), rate: c.rate}
				w := &PacedWriter{ResponseWriter: client, Conn: http.NewResponseController(client), Grace: WriteGrace}
				begun := time.Now()
				_, err := w.Write(make([]byte, c.size))
				require.Equal(t, c.cut, err != nil, "%v", err)
				require.LessOrEqual(t, time.Since(begun), c.most)
			})
		})
	}
}

// slowClient reads so many bytes a second, and obeys deadlines.
type slowClient struct {
	http.ResponseWriter
	rate int64
	due  time.Time
}

func (c *slowClient) SetWriteDeadline(t time.Time) error { c.due = t; return nil }

func (c *slowClient) Write(p []byte) (int, error) {
	takes := time.Duration(int64(len(p)) * int64(time.Second) / c.rate)
	if left := time.Until(c.due); takes > left {
		time.Sleep(max(0, left))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes)
	return len(p), nil
}
