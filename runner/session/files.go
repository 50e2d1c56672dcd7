package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// List implements Files.
func (s *Session) List(ctx context.Context, path string, recursive bool) (files []runner.FileInfo, more bool, err error) {
	clean, refused := cleanPath(path)
	if refused != nil {
		return nil, false, refused
	}
	call, err := s.call(ctx, path, frame.FileRequest{Operation: "list", Path: clean, Recursive: recursive, Max: runner.MaxListed})
	if err != nil {
		return nil, false, err
	}
	defer call.end()
	reply, err := call.reply()
	if err != nil {
		return nil, false, err
	}
	if reply.Entries < 0 || reply.Entries > runner.MaxListed {
		return nil, false, call.hostile(fmt.Errorf("a list of %d entries", reply.Entries))
	}
	files = []runner.FileInfo{}
	for size := 0; len(files) < reply.Entries; {
		line, err := call.line()
		if err != nil {
			return nil, false, err
		}
		if size += len(line); size > maxListing {
			return files, true, nil
		}
		info, err := call.entry(line)
		if err != nil {
			return nil, false, err
		}
		files = append(files, info)
	}
	return files, reply.More, nil
}

// Read implements Files. The content ends with ctx, and with the session. Its Close has
// to be called.
func (s *Session) Read(ctx context.Context, path string) (runner.FileInfo, io.ReadCloser, error) {
	clean, refused := cleanFile(path)
	if refused != nil {
		return runner.FileInfo{}, nil, refused
	}
	call, err := s.call(ctx, path, frame.FileRequest{Operation: "read", Path: clean})
	if err != nil {
		return runner.FileInfo{}, nil, err
	}
	info, err := call.replyEntry()
	if err == nil && info.Kind != runner.FileRegular {
		err = call.hostile(fmt.Errorf("content of a %s", info.Kind))
	}
	if err != nil {
		call.end()
		return runner.FileInfo{}, nil, err
	}
	return info, &fileContent{call: call, left: info.Size}, nil
}

// Write implements Files. It returns when content's Read has.
func (s *Session) Write(ctx context.Context, path string, content io.Reader) (runner.FileInfo, error) {
	clean, refused := cleanFile(path)
	if refused != nil {
		return runner.FileInfo{}, refused
	}
	call, err := s.call(ctx, path, frame.FileRequest{Operation: "write", Path: clean})
	if err != nil {
		return runner.FileInfo{}, err
	}
	defer call.end()
	sent := make(chan error, 1)
	go func() { sent <- call.send(content) }()
	info, err := call.replyEntry()
	if err == nil && !call.sent.Load() {
		err = call.hostile(errors.New("a reply before the content's end"))
	}
	if err != nil {
		call.conn.Reset() // what is written is for nothing
	}
	if failed := <-sent; failed != nil && !call.told {
		return runner.FileInfo{}, failed // the sandbox only heard of it
	}
	return info, err
}

// Delete implements Files.
func (s *Session) Delete(ctx context.Context, path string) error {
	clean, refused := cleanFile(path)
	if refused != nil {
		return refused
	}
	call, err := s.call(ctx, path, frame.FileRequest{Operation: "delete", Path: clean})
	if err != nil {
		return err
	}
	defer call.end()
	_, err = call.reply()
	return err
}

// Move implements Files.
func (s *Session) Move(ctx context.Context, from, to string, overwrite bool) (runner.FileInfo, error) {
	source, refused := cleanFile(from)
	if refused != nil {
		return runner.FileInfo{}, refused
	}
	target, refused := cleanFile(to)
	if refused != nil {
		return runner.FileInfo{}, refused
	}
	if strings.HasPrefix(target, source+"/") {
		return runner.FileInfo{}, &runner.FileError{Code: runner.FileRefused, Path: to, Message: "a folder cannot be moved into itself"}
	}
	call, err := s.call(ctx, from, frame.FileRequest{Operation: "move", Path: source, To: target, Overwrite: overwrite})
	if err != nil {
		return runner.FileInfo{}, err
	}
	defer call.end()
	moved, err := call.replyEntry()
	var failed *runner.FileError
	if errors.As(err, &failed) && (failed.Code == runner.FileExists || failed.Code == runner.FileNoRoom) {
		failed.Path = to // the answer is of no path, and these can only be about the new one
	}
	return moved, err
}

// fileContent is the content of a file that is read.
type fileContent struct {
	call *fileCall
	left int64 // bytes
	err  error
}

// Read implements io.Reader.
func (c *fileContent) Read(p []byte) (int, error) {
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	n, err := c.call.read(p)
	c.left -= int64(n)
	switch {
	case c.left < 0:
		n, c.err = n+int(c.left), c.call.changed()
	case err == io.EOF && c.left > 0:
		c.err = c.call.changed()
	default:
		c.err = err
	}
	return n, c.err
}

// Close implements io.Closer.
func (c *fileContent) Close() error {
	c.call.end()
	return nil
}
