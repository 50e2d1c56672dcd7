package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// Link is one side's end of the stream.
type Link struct {
	writing sync.Mutex
	w       io.Writer

	mu      sync.Mutex
	streams map[uint32]*Stream
}

// errOver is that the other side is another one now.
var errOver = errors.New("wire: the link is over")

// Over ends a link on this side: nothing more is written, and its streams are closed. answer
// goes out instead, after the last message.
func (l *Link) Over(answer []byte) error {
	l.writing.Lock()
	_, err := l.w.Write(answer)
	l.w = nil
	l.writing.Unlock()
	l.mu.Lock()
	streams := l.streams
	l.streams = map[uint32]*Stream{}
	l.mu.Unlock()
	for _, s := range streams {
		_ = s.Close()
	}
	return err
}

// NewLink returns a link that writes to w.
func NewLink(w io.Writer) *Link { return &Link{w: w, streams: map[uint32]*Stream{}} }

// Send writes a message in one Write. It waits while the other side does not read.
func (l *Link) Send(kind Kind, cell uint32, payload []byte) error {
	return l.send(kind, cell, payload, func() error { return nil })
}

// sendOf is Send of a stream's, which sends nothing once it is closed: what comes after an
// answer to attach is the next stream's.
func (l *Link) sendOf(s *Stream, kind Kind, payload []byte) error {
	return l.send(kind, s.cell, payload, s.open)
}

// send sends a message if allowed, which is asked when it is its turn, lets it.
func (l *Link) send(kind Kind, cell uint32, payload []byte, allowed func() error) error {
	message := make([]byte, headerSize, headerSize+len(payload)+1)
	message[0] = byte(kind)
	binary.BigEndian.PutUint32(message[1:], cell)
	binary.BigEndian.PutUint32(message[5:], uint32(len(payload)))
	message = append(append(message, payload...), end)
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.w == nil {
		return errOver
	}
	if err := allowed(); err != nil {
		return err
	}
	_, err := l.w.Write(message)
	return err
}

// SendJSON is Send of v as JSON.
func (l *Link) SendJSON(kind Kind, cell uint32, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.Send(kind, cell, payload)
}

// Serve reads messages until that fails, and returns why. Data and credit go to the streams,
// which never waits; all else goes to handle, which must not wait either.
func (l *Link) Serve(r io.Reader, handle func(Message) error) error {
	for {
		m, err := read(r)
		if err != nil {
			return err
		}
		switch m.Kind {
		case KindData, KindCredit:
			err = l.stream(m)
		default:
			err = handle(m)
		}
		if err != nil {
			return err
		}
	}
}

func (l *Link) stream(m Message) error {
	l.mu.Lock()
	s := l.streams[m.Cell]
	l.mu.Unlock()
	if s == nil { // it was under way when the stream was closed
		return nil
	}
	if m.Kind == KindData {
		return s.received(m.Payload)
	}
	if len(m.Payload) != 4 {
		return errors.New("wire: a credit that is no number")
	}
	return s.credited(binary.BigEndian.Uint32(m.Payload))
}

// Stream opens this side's end of a cell's stream.
func (l *Link) Stream(cell uint32) *Stream {
	s := &Stream{link: l, cell: cell, credit: Window}
	s.changed = sync.NewCond(&s.mu)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[cell] = s
	return s
}
