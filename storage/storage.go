package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gocloud.dev/blob"
)

// DefaultTTL is how long a link works: a chat that is read again on the same day
// still shows its images, and a link that leaked is dead on the next.
const DefaultTTL = 24 * time.Hour

// closeTimeout bounds the wait in Close for the store's own background work, which
// is cancelled first: only a disk that hangs needs longer, and it may never return.
const closeTimeout = 5 * time.Second

var (
	// ErrNotFound says that no object has this key.
	ErrNotFound = errors.New("not found")
	// ErrSignature says that a link was not made by this service, or was changed.
	ErrSignature = errors.New("invalid signature")
	// ErrExpired says that a link is genuine and its time is over.
	ErrExpired = errors.New("link expired")
)

// Options says where a Store keeps its objects and how it signs links to them.
type Options struct {
	// URL names the store: file:///folder, made with mode 0700 where it is missing,
	// or mem://, which is gone with the process. A path becomes one by url.URL, which
	// escapes it.
	URL string

	// KeyFile holds the secret that signs links. It is made with mode 0600 at first
	// use, and processes that start at once agree on it. Empty means a random
	// secret, so that links end with this process.
	KeyFile string

	// TTL is how long a link works. Zero and less mean DefaultTTL.
	TTL time.Duration

	// Now is the clock that links are made and checked by. Nil means time.Now.
	Now func() time.Time
}

// Store is one blob store and the secret for links to its objects. Its methods may
// be called from any number of goroutines.
type Store struct {
	bucket  *blob.Bucket
	folder  *folder // nil where the store is not a folder
	remote  bool    // the store is behind a network, which may fail for a while
	secrets secrets
	ttl     time.Duration
	now     func() time.Time
	probes  probes

	background sync.WaitGroup
	stop       context.CancelFunc // ends what runs in the background
}

// Open opens the store that o.URL names. ctx bounds opening alone.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{ttl: o.TTL, now: o.Now}
	if s.ttl <= 0 {
		s.ttl = DefaultTTL
	}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if s.secrets, err = loadSecrets(o.KeyFile); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if s.bucket, s.folder, err = openBucket(ctx, o.URL); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	s.remote = s.folder == nil && o.URL != "mem://"
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.probes.life = life
	if s.folder != nil {
		s.background.Go(func() { s.folder.sweep(life) })
	}
	return s, nil
}

// Close ends the store's background work. Readers and writers must be done.
func (s *Store) Close() error {
	s.stop()
	done := make(chan struct{})
	go func() {
		s.background.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
		return errors.New("storage: close: the store does not answer")
	}
	if err := s.bucket.Close(); err != nil {
		return fmt.Errorf("storage: close: %w", err)
	}
	return nil
}
