package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
)

// folderMode keeps other users of the machine away from what runs produced.
const folderMode = 0o700

// openBucket opens what rawURL names. Each scheme is listed here, not taken from
// gocloud's global URL registry: its query parameters would let a URL switch off
// what this package relies on.
func openBucket(_ context.Context, rawURL string) (*blob.Bucket, *folder, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nil, fmt.Errorf("store URL: %w", err)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, nil, fmt.Errorf("store URL %q: no query and no fragment is known for it", u.Redacted())
	}
	switch u.Scheme {
	case "file":
		return openFolder(u)
	case "mem":
		if u.Host != "" || u.Path != "" {
			return nil, nil, errors.New("store URL: mem:// takes no name")
		}
		return memblob.OpenBucket(nil), nil, nil
	default:
		return nil, nil, fmt.Errorf("store URL %q: want file:///folder or mem://", u.Redacted())
	}
}

// openFolder opens a file:// store.
//
// Sidecar files are switched off: fileblob rewrites them in place and apart from the
// object, so that two Puts, or a Put and a Get, could meet half of one. What they
// would hold is in the key (the name) or in the content (the media type).
// Temporary files stand beside their objects: a rename works within a file system
// only, and os.TempDir is often another.
func openFolder(u *url.URL) (*blob.Bucket, *folder, error) {
	if u.Host != "" && u.Host != "localhost" || u.Opaque != "" || !filepath.IsAbs(u.Path) {
		return nil, nil, fmt.Errorf("store URL %q: want an absolute path: file:///folder", u.Redacted())
	}
	bucket, err := fileblob.OpenBucket(u.Path, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: folderMode,
		NoTempDir:   true,
		Metadata:    fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open folder: %w", err)
	}
	return bucket, &folder{path: u.Path}, nil
}
