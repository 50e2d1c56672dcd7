package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"notebox/runner"
	"notebox/runner/internal/channel"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
)

const (
	// fileTimeout is how long a file operation may make no progress: a child's start
	// on a host where all cores are busy, or the deletion of a large folder.
	fileTimeout = 60 * time.Second
	// maxFileTime is how long a whole one may take, from a sandbox that makes just
	// enough progress: more than the harness gives it.
	maxFileTime = 3 * time.Minute
	// maxFileLine of a reply, bytes: two paths as ASCII JSON, and some words.
	maxFileLine = 2*frame.JSONGrowth*maxPath + 4096
	// maxListing is how long the lines of a list may be together, bytes; a longer
	// list is cut.
	maxListing = 16 << 20
	// maxFileMessage of a refusal, bytes: a sentence.
	maxFileMessage = 1000
)

// fileCall is one file operation that goes on in a session.
type fileCall struct {
	s     *Session
	ctx   context.Context
	path  string // as it was asked for
	conn  *channel.Conn
	lines *bufio.Reader
	told  bool        // the reply has come
	sent  atomic.Bool // all that is to be written
	end   func()
}

// call begins a file operation, as soon as fewer than frame.MaxFileChannels go on. The
// caller ends it.
func (s *Session) call(ctx context.Context, path string, request frame.FileRequest) (*fileCall, error) {
	leave, err := s.use.begin()
	if err != nil {
		return nil, err
	}
	select {
	case s.files <- struct{}{}:
	case <-s.use.over.Done():
		leave()
		return nil, s.use.end()
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	c := &fileCall{s: s, ctx: ctx, path: path}
	if c.conn, err = s.conversation.OpenFile(); err != nil {
		<-s.files
		leave()
		return nil, c.why(err)
	}
	c.lines = bufio.NewReaderSize(progress{c.conn}, 4096)
	stop := context.AfterFunc(ctx, func() { c.conn.Reset() })
	late := time.AfterFunc(maxFileTime, func() { c.conn.Reset() })
	c.end = sync.OnceFunc(func() {
		stop()
		late.Stop()
		if c.told && c.sent.Load() {
			c.conn.Close()
		} else {
			c.conn.Reset()
		}
		<-s.files
		leave()
	})
	line, err := json.Marshal(request)
	if err == nil {
		_, err = progress{c.conn}.Write(append(line, '\n'))
	}
	if err == nil && request.Operation != "write" {
		c.sent.Store(true)
		err = c.conn.CloseWrite()
	}
	if err != nil {
		c.end()
		return nil, c.why(err)
	}
	return c, nil
}

// progress is a channel of which each Read and Write may take fileTimeout.
type progress struct{ *channel.Conn }

func (p progress) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(fileTimeout))
	return p.Conn.Read(b)
}

func (p progress) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(fileTimeout))
	return p.Conn.Write(b)
}

// send writes content to the sandbox, and its end. It returns only errors of content: of
// others, the reply tells.
func (c *fileCall) send(content io.Reader) error {
	chunk := make([]byte, 64<<10)
	for {
		n, err := content.Read(chunk)
		if n > 0 {
			_ = c.conn.SetReadDeadline(time.Now().Add(fileTimeout)) // of the reply
			if _, err := (progress{c.conn}).Write(chunk[:n]); err != nil {
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			c.sent.Store(true)
			_ = c.conn.SetReadDeadline(time.Now().Add(fileTimeout))
			_ = c.conn.CloseWrite()
			return nil
		case err != nil:
			c.conn.Reset() // nothing is left of a write
			return fmt.Errorf("the content could not be read: %w", err)
		}
	}
}

// reply reads the reply, of success: another is the error.
func (c *fileCall) reply() (r frame.FileReply, err error) {
	line, err := c.line()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, c.hostile(err)
	}
	c.told = true
	if r.Code == "" {
		return r, nil
	}
	switch code := runner.FileCode(r.Code); code {
	case runner.FileNotFound, runner.FileExists, runner.FileNotPlain, runner.FileNoRoom, runner.FileRefused, runner.FileBusy:
		return r, &runner.FileError{Code: code, Path: c.path, Message: message(r.Message)}
	}
	return r, c.hostile(fmt.Errorf("code %q", r.Code))
}

// message is what of a sandbox's words goes on: a line of a sentence's length.
func message(hostile string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, hostile)
	if len(clean) > maxFileMessage {
		clean = strings.ToValidUTF8(clean[:maxFileMessage], "")
	}
	return clean
}

// replyEntry reads the reply to an operation on one file.
func (c *fileCall) replyEntry() (runner.FileInfo, error) {
	r, err := c.reply()
	if err != nil {
		return runner.FileInfo{}, err
	}
	return c.info(r.Entry)
}

// entry reads a line of a list.
func (c *fileCall) entry(line []byte) (runner.FileInfo, error) {
	var e frame.FileEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return runner.FileInfo{}, c.hostile(err)
	}
	return c.info(e)
}

func (c *fileCall) info(e frame.FileEntry) (runner.FileInfo, error) {
	info := runner.FileInfo{Path: e.Path, Kind: runner.FileKind(e.Kind), Size: e.Size, Modified: time.Unix(0, e.ModifiedNS)}
	switch info.Kind {
	case runner.FileRegular, runner.FileFolder, runner.FileLink, runner.FileOther:
	default:
		return runner.FileInfo{}, c.hostile(fmt.Errorf("an entry of kind %q", e.Kind))
	}
	if !conversation.CleanRelative(e.Path) || len(e.Path) > maxPath || e.Size < 0 {
		return runner.FileInfo{}, c.hostile(errors.New("an entry that cannot be"))
	}
	return info, nil
}

// line reads a line that is not too long, without its end.
func (c *fileCall) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxFileLine:
			return nil, c.hostile(errors.New("a line that is too long"))
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, c.why(err)
		}
	}
}

// read reads content. It is io.EOF at the sandbox's end.
func (c *fileCall) read(p []byte) (int, error) {
	n, err := c.lines.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.why(err)
	}
	return n, err
}

// hostile is the error if the sandbox's answer makes no sense.
func (c *fileCall) hostile(err error) error {
	c.s.all.log.Warn("a session's file operation was not answered as it should be", "session", c.s.spec.ID, "error", err)
	return &runner.FileError{Code: runner.FileBusy, Path: c.path, Message: "the sandbox gave no answer that makes sense"}
}

// changed is the error if the size of a file is not what it was.
func (c *fileCall) changed() error {
	return &runner.FileError{Code: runner.FileBusy, Path: c.path, Message: "the file was changed while it was read"}
}

// why is how a channel came to its end.
func (c *fileCall) why(err error) error {
	if end := (*runner.GoneError)(nil); errors.As(c.s.orGone(err), &end) {
		return end
	}
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &runner.FileError{Code: runner.FileBusy, Path: c.path, Message: "it took too long"}
	}
	return &runner.FileError{Code: runner.FileBusy, Path: c.path, Message: "it was cut off in the sandbox"}
}
