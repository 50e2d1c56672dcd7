package storage

import (
	"context"
	"errors"
	"io"

	"gocloud.dev/blob"
)

// errAborted ends an upload that is not to be.
var errAborted = errors.New("aborted")

// upload is an object on its way into a cloud. The driver reads it from a pipe, so that
// an object that is not whole ends in an error, which no client takes for its end:
// blob.Writer has but Close to say either. Then nothing was completed, and what the cloud
// has of it is taken back (S3's multipart upload) or forgotten by it (Azure's and
// Google's, within a week).
type upload struct {
	content *io.PipeWriter
	done    chan struct{}
	err     error // may be read when done is closed
	cancel  context.CancelFunc
}

func startUpload(ctx context.Context, bucket *blob.Bucket, key string, options *blob.WriterOptions) *upload {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	u := &upload{content: w, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(u.done)
		u.err = bucket.Upload(ctx, key, onlyReader{r}, options)
		_ = r.CloseWithError(u.failure())
	}()
	return u
}

// failure is what a Write gets that comes after the end.
func (u *upload) failure() error {
	if u.err != nil {
		return u.err
	}
	return io.ErrClosedPipe
}

func (u *upload) Write(p []byte) (int, error) { return u.content.Write(p) }

func (u *upload) commit() error {
	_ = u.content.Close()
	<-u.done
	u.cancel()
	return u.err
}

func (u *upload) abort() {
	_ = u.content.CloseWithError(errAborted)
	u.cancel()
	<-u.done
}

// onlyReader hides what else a pipe can do.
type onlyReader struct{ io.Reader }
