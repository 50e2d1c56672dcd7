package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cenkalti/backoff/v5"
)

// copyBufferBytes is what one Put holds of its content. With four times as much, big
// files are no faster, and small ones are slower.
const copyBufferBytes = 32 << 10

// Put streams content into the object key and replaces what was there. name is what
// people see; it and the first bytes of content give the media type. If content or
// the store fails, or ctx ends, the error says so, and under the key is what was there
// before.
//
// If the error is Temporary and content is an io.Seeker, Put begins anew for up to ten
// seconds; see Replay for contents that come once.
//
// content is read in the calling goroutine: ctx is checked between two reads and cannot
// interrupt one.
func (s *Store) Put(ctx context.Context, key string, content io.Reader, name string) (Object, error) {
	from := newSource(content)
	var failed error // of the last try: if ctx ends between two, err is that end alone
	object, err := again(ctx, func() (Object, error) {
		object, err := s.put(ctx, key, from, name)
		failed = err
		if err != nil && !(Temporary(err) && from.rewind()) {
			return object, backoff.Permanent(err)
		}
		return object, err
	})
	if err == nil {
		return object, nil
	}
	err = shown(failed)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err) // a cloud's client has hidden it
	}
	return Object{}, fmt.Errorf("storage: put %q: %w", key, err)
}

func (s *Store) put(ctx context.Context, key string, content io.Reader, name string) (Object, error) {
	if !validKey(key) {
		return Object{}, errors.New("not a key")
	}
	content = contextReader{ctx, content}
	buffer := make([]byte, copyBufferBytes)
	head, ended, err := readHead(content, buffer)
	if err != nil {
		return Object{}, err
	}
	object := Object{Key: key, Name: name, MediaType: MediaType(name, head)}

	w, err := s.create(ctx, object, ended)
	if err != nil {
		return Object{}, err
	}
	defer w.abort()
	hash := sha256.New()
	target := io.MultiWriter(w, hash)
	if _, err := target.Write(head); err != nil {
		return Object{}, err
	}
	if !ended {
		object.Bytes, err = io.CopyBuffer(target, content, buffer)
		if err != nil {
			return Object{}, err
		}
	}
	if err := w.commit(); err != nil {
		return Object{}, err
	}
	object.Bytes += int64(len(head))
	object.SHA256 = hex.EncodeToString(hash.Sum(nil))
	object.ModTime = s.now()
	return object, nil
}

// readHead reads the bytes that a media type is told by into buffer; ended says that
// there are no more. It is not io.ReadFull, which hides a content that was cut off and
// says io.ErrUnexpectedEOF of itself.
func readHead(content io.Reader, buffer []byte) (head []byte, ended bool, err error) {
	head = buffer[:sniffBytes]
	n := 0
	for n < len(head) {
		read, err := content.Read(head[n:])
		n += read
		if err == io.EOF {
			return head[:n], true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return head, false, nil
}

// contextReader ends with its context. Hiding the other methods of its reader keeps
// io.CopyBuffer with the buffer that it was given.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
