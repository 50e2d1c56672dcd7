package web

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFileIsClosedWhenNobodyReadsIt: of several ranges, http.ServeContent reads on for a
// while when the client has left.
func TestFileIsClosedWhenNobodyReadsIt(t *testing.T) {
	file := &slowFile{reading: make(chan struct{}), read: make(chan struct{})}
	content := &servedContent{file: file, stall: time.AfterFunc(time.Hour, func() {}), after: time.Hour}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Range", "bytes=0-9,20-29")
	w := leaver{httptest.NewRecorder(), file.reading}
	w.Header().Set("Content-Type", "text/csv") // else it is read for it
	http.ServeContent(w, r, "", time.Time{}, content)
	closed := make(chan error, 1)
	go func() { closed <- content.Close() }()
	select {
	case <-closed:
		t.Fatal("it was closed while it was read")
	case <-time.After(50 * time.Millisecond):
	}
	close(file.read)
	require.NoError(t, <-closed)
	_, err := content.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed, "else a store would open it again")
	_, err = content.Seek(0, io.SeekStart)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// slowFile has 100 bytes, and gives the first when it may.
type slowFile struct {
	reading, read chan struct{}
}

func (f *slowFile) Read(p []byte) (int, error) {
	close(f.reading)
	<-f.read
	return len(p), nil
}

func (*slowFile) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		offset += 100
	}
	return offset, nil
}

func (*slowFile) Close() error { return nil }

// leaver is a client that leaves while the file is read.
type leaver struct {
	*httptest.ResponseRecorder
	reading chan struct{}
}

func (l leaver) Write([]byte) (int, error) {
	<-l.reading
	return 0, errors.New("the client left")
}
