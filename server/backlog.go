package server

import (
	"os"

	"notebox/executor/intake"
)

// backlog is what a client has not read yet, first in, first out: at most intake.SpoolMemory
// bytes of it in memory, the rest in a file of work. If the disk takes no more, the rest
// stays in memory: a reply that is there is not lost for it.
type backlog struct {
	work *intake.Workspace

	head     []byte // older than what is in file
	file     *os.File
	from, to int64  // what of file is still to be read
	full     error  // why the disk takes no more
	rest     []byte // newer than what is in file
	piece    []byte // for what is read of file
}

// add takes all of p.
func (b *backlog) add(p []byte) {
	if b.from == b.to && len(b.rest) == 0 && len(b.head)+len(p) <= intake.SpoolMemory {
		b.head = append(b.head, p...)
		return
	}
	if b.full == nil {
		var n int
		n, b.full = b.spill(p)
		p = p[n:]
	}
	b.rest = append(b.rest, p...)
}

func (b *backlog) spill(p []byte) (n int, err error) {
	if b.file == nil {
		if b.file, err = b.work.Create(); err != nil {
			return 0, err
		}
	}
	n, err = b.file.WriteAt(p, b.to)
	b.to += int64(n)
	return n, err
}

// next takes the oldest bytes, at most writePiece of them, or none if there are none.
// They may be used until the next call of next.
func (b *backlog) next() (p []byte, err error) {
	switch {
	case len(b.head) > 0:
		p, b.head = b.head, nil
	case b.from < b.to:
		if b.piece == nil {
			b.piece = make([]byte, writePiece)
		}
		p = b.piece[:min(writePiece, b.to-b.from)]
		if _, err = b.file.ReadAt(p, b.from); err != nil {
			return nil, err
		}
		if b.from += int64(len(p)); b.from == b.to {
			b.from, b.to, err = 0, 0, b.file.Truncate(0)
		}
	case len(b.rest) > 0:
		n := min(writePiece, len(b.rest))
		if p, b.rest = b.rest[:n], b.rest[n:]; len(b.rest) == 0 {
			b.rest = nil
		}
	}
	return p, err
}

// size is how many bytes there are.
func (b *backlog) size() int64 { return int64(len(b.head)) + b.spooled() }

// spooled is how many of them are no longer small enough for memory.
func (b *backlog) spooled() int64 { return b.to - b.from + int64(len(b.rest)) }

// close forgets all.
func (b *backlog) close() error {
	work := b.work
	if b.file != nil {
		_ = b.file.Close() // it is removed
	}
	*b = backlog{work: work}
	return work.Remove()
}
