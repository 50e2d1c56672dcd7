package conversation

import (
	"errors"
	"fmt"
	"io"

	"notebox/runner/internal/frame"
)

// errIncomplete is the cause if a file could not be read to its end inside.
var errIncomplete = errors.New("the file could not be read to its end")

// fileContent reads the content of one file off the stream, up to its end frame.
type fileContent struct {
	r    *reception
	rest []byte
	err  error // io.EOF after a good end
}

func (f *fileContent) Read(p []byte) (int, error) {
	for len(f.rest) == 0 && f.err == nil {
		f.err = f.next()
	}
	if len(f.rest) == 0 {
		return 0, f.err
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next takes one frame of the content.
func (f *fileContent) next() error {
	kind, payload, err := f.r.job.next()
	if err != nil {
		return err
	}
	switch kind {
	case frame.KindFileData:
		if f.r.bytes += int64(len(payload)); f.r.bytes > f.r.job.spec.Limits.FileSize {
			return fmt.Errorf("files of more than %d bytes", f.r.job.spec.Limits.FileSize)
		}
		f.rest = payload
		return nil
	case frame.KindFileEnd:
		end, err := frame.Decode[frame.FileEnd](kind, payload)
		if err == nil && end.Reason != "" {
			err = fmt.Errorf("%w: %s", errIncomplete, end.Reason)
		}
		if err == nil {
			err = io.EOF
		}
		return err
	}
	return fmt.Errorf("frame %q in a file", rune(kind))
}
