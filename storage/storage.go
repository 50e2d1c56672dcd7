package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
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
	// URL names the store. A folder, azblob://container, s3://bucket or gs://bucket is
	// made if it is missing:
	//
	//   - file:///folder, with mode 0700. A path becomes one by url.URL, which escapes it.
	//   - azblob://container, or azblob:// and AZURE_BLOB_CONTAINER_NAME;
	//     ?endpoint=https://account.blob.…
	//   - s3://bucket?region=…&endpoint=https://…&path_style=true
	//   - gs://bucket?project=…&endpoint=http://…
	//   - mem://, which is gone with the process.
	URL string

	// Getenv gives the variables with the credentials of a cloud. Nil means os.Getenv.
	// What it does not give, the cloud's own client looks for in the usual places.
	Getenv func(string) string

	// ServeFiles says who serves what a link leads to: ServeAuto, which is also what
	// empty means, or ServeProxy.
	ServeFiles string

	// KeyFile holds the secrets that sign links of this service's own. It is made with
	// mode 0600 at first use, and processes that start at once agree on it. Empty means a
	// random secret, so that links end with this process.
	KeyFile string

	// KeyAge is after how long another secret signs. The old ones verify as long as
	// links made with them work. Zero means DefaultKeyAge.
	KeyAge time.Duration

	// TTL is how long a link works. Zero and less mean DefaultTTL.
	TTL time.Duration

	// Now is the clock that links are made and checked by. Nil means time.Now.
	Now func() time.Time
}

// Who serves what a link leads to.
const (
	// ServeAuto leaves it to a cloud, if it can make links: SAS, presigned or V4.
	ServeAuto = "auto"
	// ServeProxy means the service that made the link, for people who do not reach the
	// cloud, or may not know where files are.
	ServeProxy = "proxy"
)

// Store is one blob store and the secret for links to its objects. Its methods may
// be called from any number of goroutines.
type Store struct {
	opened
	keys   *keyring
	direct bool // links are the cloud's own
	ttl    time.Duration
	now    func() time.Time
	probes probes

	background sync.WaitGroup
	stop       context.CancelFunc // ends what runs in the background
}

// Open opens the store that o.URL names. ctx bounds opening alone.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{ttl: cmp.Or(max(o.TTL, 0), DefaultTTL), now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	var err error
	if s.keys, err = openKeyring(o.KeyFile, o.KeyAge, s.ttl, s.now); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if s.opened, err = openBucket(ctx, o.URL, getenv); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if err = s.chooseLinks(o.ServeFiles); err != nil {
		return nil, errors.Join(fmt.Errorf("storage: %w", err), s.bucket.Close())
	}
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.probes.life = life
	if s.folder != nil {
		s.background.Go(func() { s.folder.sweep(life) })
	}
	return s, nil
}

// chooseLinks checks what the cloud would refuse with each link.
func (s *Store) chooseLinks(serve string) error {
	switch serve {
	case "", ServeAuto:
		s.direct = s.signs
	case ServeProxy:
	default:
		return fmt.Errorf("serve files: want %s or %s", ServeAuto, ServeProxy)
	}
	if s.direct && s.ttl > maxCloudTTL {
		return fmt.Errorf("a cloud's links work for %v at most, not for %v; those of this service (%s) for any time", maxCloudTTL, s.ttl, ServeProxy)
	}
	return nil
}

// Name is the store's URL without what may be secret, for logs.
func (s *Store) Name() string { return s.name }

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
