package server

import (
	"context"
	"io"
	"path"
	"time"

	"notebox/runner"
	"notebox/storage"
)

// listener hears of a run while it goes on. Its methods are called one at a time
// and must not wait for a client: the run waits for them.
type listener interface {
	output(entry any)     // one of the reply's outputs
	file(entry fileEntry) // one of the reply's files
}

// silence is the listener of those who want the whole reply alone.
type silence struct{}

func (silence) output(any)     {}
func (silence) file(fileEntry) {}

// sink takes what a run produces while it runs; see runner.Sink.
type sink struct {
	keeper  *keeper
	partial *partial
	to      listener
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
	entry := fileEntry{
		Path:      dataDir + name,
		Name:      path.Base(name),
		MediaType: object.MediaType,
		Bytes:     object.Bytes,
		SHA256:    object.SHA256,
		URL:       object.url,
		ExpiresAt: object.expires.UTC().Truncate(time.Second),
	}
	s.files = append(s.files, entry)
	s.to.file(entry)
	return nil
}
