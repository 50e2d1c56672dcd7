package server

import (
	"context"
	"io"
	"path"
	"time"

	"notebox/runner"
	"notebox/storage"
)

// sink takes what a run produces while it runs; see runner.Sink.
type sink struct {
	keeper  *keeper
	partial *partial
	files   []fileEntry
}

// fileEntry is a file that a run created or changed, as the reply names it.
type fileEntry struct {
	Path      string    `json:"path"`
	Name      string    `json:"name"`
	MediaType string    `json:"media_type"`
	Bytes     int64     `json:"bytes"`
	SHA256    string    `json:"sha256"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Output implements runner.Sink.
func (s *sink) Output(e runner.Event) { s.partial.add(e) }

// File implements runner.Sink: the file goes to the store while it arrives. Its
// error becomes the reason in the outcome's skipped files.
func (s *sink) File(ctx context.Context, name string, content io.Reader) error {
	object, err := s.keeper.put(ctx, storage.KindFile, name, path.Base(name), content)
	if err != nil {
		return err
	}
	s.files = append(s.files, fileEntry{
		Path:      dataDir + name,
		Name:      path.Base(name),
		MediaType: object.MediaType,
		Bytes:     object.Bytes,
		SHA256:    object.SHA256,
		URL:       object.url,
		ExpiresAt: object.expires.UTC().Truncate(time.Second),
	})
	return nil
}
