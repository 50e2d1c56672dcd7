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

const wantedURLs = "want file:///folder, azblob://container, s3://bucket, gs://bucket or mem://"

// opened is a store as its URL names it.
type opened struct {
	name   string // the URL without its parameters
	bucket *blob.Bucket
	folder *folder // nil if the store is not a folder
	cloud  cloud   // nil if it is not in a cloud

	// of a cloud
	signs     bool // the credentials can make links, as a SAS token cannot
	takesBack bool // an upload that fails has parts to be removed
	partBytes int  // the piece in which it gets a big file
}

// openBucket opens what rawURL names. Each scheme is listed here, not taken from
// gocloud's global URL registry: its query parameters would let a URL switch off
// what this package relies on.
func openBucket(ctx context.Context, rawURL string, getenv func(string) string) (opened, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // not wrapped: it quotes the URL
		return opened{}, errors.New("store URL: not a URL: " + wantedURLs)
	}
	var o opened
	switch u.Scheme {
	case "azblob":
		o, err = openAzure(ctx, u, getenv)
	case "s3":
		o, err = openS3(ctx, u, getenv)
	case "gs":
		o, err = openGCS(ctx, u, getenv)
	case "file", "mem":
		o, err = openLocal(u)
	default:
		err = fmt.Errorf("store URL %q: %s", nameOfStore(u), wantedURLs)
	}
	if o.name == "" {
		o.name = nameOfStore(u)
	}
	return o, err
}

// nameOfStore is a URL without what may be secret.
func nameOfStore(u *url.URL) string {
	short := *u
	short.RawQuery, short.Fragment, short.ForceQuery = "", "", false
	return short.Redacted()
}

func openLocal(u *url.URL) (opened, error) {
	if u.RawQuery != "" || u.Fragment != "" {
		return opened{}, fmt.Errorf("store URL %q: no query and no fragment is known for it", nameOfStore(u))
	}
	if u.Scheme == "file" {
		return openFolder(u)
	}
	if u.Host != "" || u.Path != "" {
		return opened{}, errors.New("store URL: mem:// takes no name")
	}
	return opened{bucket: memblob.OpenBucket(nil)}, nil
}

// openFolder opens a file:// store.
//
// Sidecar files are switched off: fileblob rewrites them in place and apart from the
// object, so that two Puts, or a Put and a Get, could meet half of one. What they
// would hold is in the key (the name) or in the content (the media type).
// Temporary files stand beside their objects: a rename works within a file system
// only, and os.TempDir is often another.
func openFolder(u *url.URL) (opened, error) {
	if u.Host != "" && u.Host != "localhost" || u.Opaque != "" || !filepath.IsAbs(u.Path) {
		return opened{}, fmt.Errorf("store URL %q: want an absolute path: file:///folder", nameOfStore(u))
	}
	bucket, err := fileblob.OpenBucket(u.Path, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: folderMode,
		NoTempDir:   true,
		Metadata:    fileblob.MetadataDontWrite,
	})
	if err != nil {
		return opened{}, fmt.Errorf("open folder: %w", err)
	}
	return opened{bucket: bucket, folder: &folder{path: u.Path}}, nil
}
