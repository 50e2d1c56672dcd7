package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Stream is one side's end of a cell's stream.
type Stream struct {
	link    *Link
	cell    uint32
	writing sync.Mutex // of several Writes, one after the other

	mu      sync.Mutex
	changed *sync.Cond
	buffer  bytes.Buffer // received, not read; at most Window
	taken   int          // bytes read that no credit was given back for
	credit  int          // bytes that the other side has room for
	ended   error        // what Read returns after the last byte
	closed  bool
}

func (s *Stream) received(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil
	case s.buffer.Len()+s.taken+len(data) > Window:
		return errors.New("wire: more data than there is room for")
	}
	s.buffer.Write(data)
	s.changed.Broadcast()
	return nil
}

func (s *Stream) credited(n uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || n > Window || s.credit+int(n) > Window {
		return errors.New("wire: a credit for more than was sent")
	}
	s.credit += int(n)
	s.changed.Broadcast()
	return nil
}

// Read waits for data. After the last byte before End it returns what End was told.
func (s *Stream) Read(p []byte) (int, error) {
	n, credit, err := s.take(p)
	if credit > 0 {
		// If this fails, the link has ended, which the next Read is told.
		_ = s.link.sendOf(s, KindCredit, binary.BigEndian.AppendUint32(nil, uint32(credit)))
	}
	return n, err
}

func (s *Stream) take(p []byte) (n, credit int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.buffer.Len() == 0 {
		switch {
		case s.closed:
			return 0, 0, io.ErrClosedPipe
		case s.ended != nil:
			return 0, 0, s.ended
		}
		s.changed.Wait()
	}
	n, _ = s.buffer.Read(p)
	s.taken += n
	// Not for each few bytes, nor so late that the other side waits.
	if s.taken >= Window/2 {
		credit, s.taken = s.taken, 0
	}
	if s.buffer.Len() == 0 && s.buffer.Cap() > maxData {
		s.buffer = bytes.Buffer{} // a cell that waits holds nothing
	}
	return n, credit, nil
}

// Write waits for the other side's reader.
func (s *Stream) Write(p []byte) (written int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for written < len(p) {
		n, err := s.Room(len(p) - written)
		if err == nil {
			err = s.link.sendOf(s, KindData, p[written:written+n])
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// Room waits until the other side has room, and takes it: at most as much as is wanted.
func (s *Stream) Room(wanted int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, io.ErrClosedPipe
		case s.ended != nil:
			return 0, s.ended
		case s.credit > 0:
			n := min(wanted, s.credit, maxData)
			s.credit -= n
			return n, nil
		}
		s.changed.Wait()
	}
}

// open is io.ErrClosedPipe after Close.
func (s *Stream) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return io.ErrClosedPipe
	}
	return nil
}

// End has Read return err after what has come, and Write at once. The first one counts.
func (s *Stream) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = err
	}
	s.changed.Broadcast()
}

// Close ends what waits at this end. What still comes is dropped.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed, s.buffer = true, bytes.Buffer{}
	s.changed.Broadcast()
	s.mu.Unlock()
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.link.streams[s.cell] == s {
		delete(s.link.streams, s.cell)
	}
	return nil
}
