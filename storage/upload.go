package storage

import (
	"context"
	"errors"
	"io"
	"time"

	"gocloud.dev/blob"
)

// abortTimeout bounds taking back an upload: whoever waits for it has given up already.
const abortTimeout = 5 * time.Second

// errAborted ends an upload that is not to be.
var errAborted = errors.New("aborted")

// upload is an object on its way into a cloud. The driver reads it from a pipe, so that
// an object that is not whole ends in an error, which no client takes for its end:
// blob.Writer has but Close to say either. Then nothing was completed, and what the cloud
// has of it is taken back (S3's parts) or forgotten by it (Azure's and Google's, within a
// week).
type upload struct {
	ctx     context.Context // of the Put
	content *io.PipeWriter
	done    chan struct{}
	err     error // may be read when done is closed
	cancel  context.CancelFunc
	unwatch func() bool
}

// startUpload starts to write the object key. With takeBack, the upload has abortTimeout
// after its content has failed or ctx has ended: parts that are still under way when
// others are taken back would stay. Without, its requests end at once.
func startUpload(ctx context.Context, bucket *blob.Bucket, key string, options *blob.WriterOptions, takeBack bool) *upload {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r, w := io.Pipe()
	u := &upload{ctx: ctx, content: w, done: make(chan struct{}), cancel: cancel}
	source := &uploadReader{r: r, failed: cancel}
	if takeBack {
		source.failed = func() { time.AfterFunc(abortTimeout, cancel) }
	}
	u.unwatch = context.AfterFunc(ctx, func() {
		_ = w.CloseWithError(ctx.Err())
		source.failed() // also if the content is read to its end
	})
	go func() {
		defer close(u.done)
		u.err = bucket.Upload(life, key, source, options)
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
	if err := u.ctx.Err(); err != nil { // its content may have ended for that
		u.abort()
		return err
	}
	_ = u.content.Close()
	u.end()
	return u.err
}

func (u *upload) abort() {
	_ = u.content.CloseWithError(errAborted)
	u.end()
}

func (u *upload) end() {
	<-u.done
	u.unwatch()
	u.cancel()
}

// uploadReader is what a driver reads. It tells of a failure before the driver knows: of
// one that is not an io.Reader's upload but a loop of Writes (Google's), gocloud closes
// the writer then, which would complete the object. It also hides what else a pipe can do.
type uploadReader struct {
	r      io.Reader
	failed func()
}

func (u *uploadReader) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		u.failed()
	}
	return n, err
}
