package frame_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"notebox/runner/internal/frame"
)

const maxEvent = 4 * frame.MaxControl

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		desc    string
		kind    frame.Kind
		payload []byte
	}{
		{"nothing", frame.KindGo, []byte{}},
		{"some bytes", frame.KindFileData, []byte("a\x00\xff\n")},
		{"a chunk", frame.KindNotebookIn, make([]byte, frame.ChunkSize)},
		{"the largest", frame.KindFileData, make([]byte, frame.MaxControl)},
		{"the largest event", frame.KindEvent, make([]byte, maxEvent)},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var stream bytes.Buffer
			require.NoError(t, frame.Write(&stream, c.kind, c.payload))
			require.NoError(t, frame.Write(&stream, frame.KindDone, nil))
			kind, payload, err := frame.Read(iotest.OneByteReader(&stream), maxEvent)
			require.NoError(t, err)
			require.Equal(t, c.kind, kind)
			require.True(t, bytes.Equal(c.payload, payload))
			kind, _, err = frame.Read(&stream, maxEvent)
			require.NoError(t, err)
			require.Equal(t, frame.KindDone, kind, "not a byte more was read")
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		desc string
		raw  []byte
		is   error
		says string
	}{
		{desc: "the end", raw: nil, is: io.EOF},
		{desc: "half a header", raw: []byte{1, 'R', 0}, is: io.ErrUnexpectedEOF},
		{desc: "no payload", raw: header(1, 'R', 4), is: io.EOF},
		{desc: "half a payload", raw: append(header(1, 'R', 4), "ab"...), is: io.ErrUnexpectedEOF},
		{desc: "an older version", raw: header(0, 'R', 0), says: "version 0, not 1"},
		{desc: "a later version", raw: header(2, 'R', 0), says: "version 2, not 1"},
		{desc: "one byte too much", raw: header(1, 'R', frame.MaxControl+1), says: "1048577 bytes, more than 1048576"},
		{desc: "an event one byte too large", raw: header(1, 'E', maxEvent+1), says: "more than 4194304"},
		{desc: "the largest number", raw: header(1, 'D', 1<<32-1), says: "4294967295 bytes"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, payload, err := frame.Read(bytes.NewReader(c.raw), maxEvent)
			require.Error(t, err)
			require.Nil(t, payload)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

// header is that of a frame.
func header(version, kind byte, size uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{version, kind}, size)
}

func TestReadReturnsTheStreamsError(t *testing.T) {
	broken := errors.New("connection reset")
	for _, raw := range [][]byte{nil, header(1, 'R', 4)} {
		_, _, err := frame.Read(io.MultiReader(bytes.NewReader(raw), iotest.ErrReader(broken)), 0)
		require.ErrorIs(t, err, broken)
	}
}

// TestWriteIsOneWrite matters where frames of several goroutines share a stream.
func TestWriteIsOneWrite(t *testing.T) {
	var w countingWriter
	require.NoError(t, frame.WriteJSON(&w, frame.KindInput, frame.Input{Path: "a"}))
	require.Equal(t, 1, w.writes)
	require.Error(t, frame.WriteJSON(&w, frame.KindInput, make(chan int)))
	require.Equal(t, 1, w.writes)
}

type countingWriter struct{ writes int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	return len(p), nil
}

func TestDecode(t *testing.T) {
	file, err := frame.Decode[frame.File](frame.KindFile, []byte(`{"path":"a","more":[1]}`))
	require.NoError(t, err, "a later harness may say more")
	require.Equal(t, frame.File{Path: "a"}, file)
	_, err = frame.Decode[frame.File](frame.KindFile, []byte(`{"path":1}`))
	require.ErrorContains(t, err, "frame 'F'")
}

// FuzzRead reads frames to the end of any bytes.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add(header(1, 'G', 0))
	f.Add(append(header(1, 'R', 13), `{"version":1}`...))
	f.Add(append(header(1, 'D', 3), append([]byte("abc"), header(1, 'Z', 2)...)...))
	f.Add(header(1, 'E', 1<<31))
	f.Add(header(9, 0, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const most = 2 * frame.MaxControl
		stream := bytes.NewReader(raw)
		for {
			before := stream.Len()
			kind, payload, err := frame.Read(stream, most)
			if err != nil {
				require.Nil(t, payload)
				return
			}
			require.LessOrEqual(t, len(payload), most)
			var again bytes.Buffer
			require.NoError(t, frame.Write(&again, kind, payload))
			at := len(raw) - before
			require.Equal(t, raw[at:at+again.Len()], again.Bytes(), "what is written is what was read")
		}
	})
}
