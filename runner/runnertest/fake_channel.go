package runnertest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
)

// errOver is what is left of a fake's channel that was reset.
var errOver = errors.New("the channel was reset")

// fakeChannels are the file operations of a fake's session.
type fakeChannels struct {
	out    io.Writer
	folder *fakeFolder

	mu   sync.Mutex
	last uint32
	open map[uint32]*fakeChannel
}

func newFakeChannels(out io.Writer, folder *fakeFolder) *fakeChannels {
	return &fakeChannels{out: out, folder: folder, open: map[uint32]*fakeChannel{}}
}

// reset ends all of them without a word.
func (c *fakeChannels) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.open {
		c.drop(id)
	}
	c.last = 0
}

// drop ends a channel. The lock is held.
func (c *fakeChannels) drop(id uint32) {
	if ch := c.open[id]; ch != nil {
		ch.over = true
		ch.changed.Broadcast()
		delete(c.open, id)
	}
}

// receive takes one payload.
func (c *fakeChannels) receive(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, id, data := payload[0], binary.BigEndian.Uint32(payload[1:]), payload[5:]
	ch := c.open[id]
	switch op {
	case 'o':
		if id <= c.last || !channel.Ours(payload) || len(c.open) >= frame.MaxFileChannels {
			return fmt.Errorf("channel %d is not to be opened, beside %d", id, len(c.open))
		}
		c.last = id
		ch = &fakeChannel{all: c, id: id, credit: channel.Window}
		ch.changed.L = &c.mu
		c.open[id] = ch
		go ch.serve()
	case 'd':
		if ch != nil {
			ch.in.Write(data)
		}
	case 'c':
		if ch != nil {
			ch.credit += int(binary.BigEndian.Uint32(data))
		}
	case 'e':
		if ch != nil {
			ch.ended = true
			if ch.shut {
				c.drop(id)
			}
		}
	case 'q', 'x':
		c.drop(id)
	default:
		return fmt.Errorf("operation %q", rune(op))
	}
	if ch != nil {
		ch.changed.Broadcast()
	}
	return nil
}

func (c *fakeChannels) write(op byte, id uint32, data []byte) {
	_ = frame.Write(c.out, frame.KindChannel, append(binary.BigEndian.AppendUint32([]byte{op}, id), data...))
}

// fakeChannel is one file operation, under the lock of all.
type fakeChannel struct {
	all     *fakeChannels
	id      uint32
	changed sync.Cond
	in      bytes.Buffer
	credit  int
	ended   bool // the service's side
	shut    bool // this side
	over    bool
}

// Read implements io.Reader, and gives credit back.
func (c *fakeChannel) Read(p []byte) (int, error) {
	c.all.mu.Lock()
	for c.in.Len() == 0 && !c.ended && !c.over {
		c.changed.Wait()
	}
	if c.over || c.in.Len() == 0 {
		defer c.all.mu.Unlock()
		if c.over {
			return 0, errOver
		}
		return 0, io.EOF
	}
	n, _ := c.in.Read(p)
	c.all.mu.Unlock()
	c.all.write('c', c.id, binary.BigEndian.AppendUint32(nil, uint32(n)))
	return n, nil
}

// Write implements io.Writer, as far as there is credit.
func (c *fakeChannel) Write(p []byte) (written int, err error) {
	for written < len(p) {
		c.all.mu.Lock()
		for c.credit == 0 && !c.over {
			c.changed.Wait()
		}
		n := min(c.credit, len(p)-written, 64<<10)
		c.credit -= n
		over := c.over
		c.all.mu.Unlock()
		if over {
			return written, errOver
		}
		c.all.write('d', c.id, p[written:written+n])
		written += n
	}
	return written, nil
}

// end says that nothing more comes from here.
func (c *fakeChannel) end() {
	c.all.mu.Lock()
	over := c.over
	c.shut = true
	if c.ended {
		c.all.drop(c.id)
	}
	c.all.mu.Unlock()
	if !over {
		c.all.write('e', c.id, nil)
	}
}

// serve does the operation.
func (c *fakeChannel) serve() {
	defer c.end()
	in := bufio.NewReader(c)
	line, err := in.ReadBytes('\n')
	var request frame.FileRequest
	if err != nil || json.Unmarshal(line, &request) != nil {
		return
	}
	content, refusal := []byte(nil), (*fakeRefusal)(nil)
	if request.Operation == "write" {
		content, err = io.ReadAll(io.LimitReader(in, c.all.folder.room+1))
		if err != nil {
			return // it was called off
		}
	}
	reply, entries, content, refusal := c.all.folder.do(request, content)
	if refusal != nil {
		reply = frame.FileReply{Code: string(refusal.code), Message: refusal.message}
	}
	lines, _ := json.Marshal(reply)
	lines = append(lines, '\n')
	for _, e := range entries {
		one, _ := json.Marshal(e)
		lines = append(append(lines, one...), '\n')
	}
	_, _ = c.Write(append(lines, content...))
}
