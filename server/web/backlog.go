package web

import (
	"os"

	"notebox/executor/intake"
)

// Backlog is what a client has not read yet, first in, first out: at most intake.SpoolMemory
// bytes of it in memory, the rest in a file of work. If the disk takes no more, the rest
// stays in memory: a reply that is there is not lost for it.
type Backlog struct {
	Work *intake.Workspace

	Head     []byte // older than what is in file
	file     *os.File
	from, to int64  // what of file is still to be read
	Full     error  // why the disk takes no more
	Rest     []byte // newer than what is in file
	piece    []byte // for what is read of file
}

// Add takes all of p.
func (b *Backlog) Add(p []byte) {
	if b.from == b.to && len(b.Rest) == 0 && len(b.Head)+len(p) <= intake.SpoolMemory {
		b.Head = append(b.Head, p...)
		return
	}
	if b.Full == nil {
		var n int
		n, b.Full = b.spill(p)
		p = p[n:]
	}
	b.Rest = append(b.Rest, p...)
}

func (b *Backlog) spill(p []byte) (n int, err error) {
	if b.file == nil {
		if b.file, err = b.Work.Create(); err != nil {
			return 0, err
		}
	}
	n, err = b.file.WriteAt(p, b.to)
	b.to += int64(n)
	return n, err
}

// Next takes the oldest bytes, at most WritePiece of them, or none if there are none.
// They may be used until the next call of Next.
func (b *Backlog) Next() (p []byte, err error) {
	switch {
	case len(b.Head) > 0:
		p, b.Head = b.Head, nil
	case b.from < b.to:
		if b.piece == nil {
			b.piece = make([]byte, WritePiece)
		}
		p = b.piece[:min(WritePiece, b.to-b.from)]
		if _, err = b.file.ReadAt(p, b.from); err != nil {
			return nil, err
		}
		if b.from += int64(len(p)); b.from == b.to {
			b.from, b.to, err = 0, 0, b.file.Truncate(0)
		}
	case len(b.Rest) > 0:
		n := min(WritePiece, len(b.Rest))
		if p, b.Rest = b.Rest[:n], b.Rest[n:]; len(b.Rest) == 0 {
			b.Rest = nil
		}
	}
	return p, err
}

// Size is how many bytes there are.
func (b *Backlog) Size() int64 { return int64(len(b.Head)) + b.spooled() }

// spooled is how many of them are no longer small enough for memory.
func (b *Backlog) spooled() int64 { return b.to - b.from + int64(len(b.Rest)) }

// Close forgets all.
func (b *Backlog) Close() error {
	work := b.Work
	if b.file != nil {
		_ = b.file.Close() // it is removed
	}
	*b = Backlog{Work: work}
	return work.Remove()
}
