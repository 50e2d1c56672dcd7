package executor

import (
	"context"
	"errors"
	"io"
	"path"
	"time"

	"notebox/notebook"
	"notebox/runner"
)

// Listener hears of a run while it goes on, in order and when each image is
// stored. Its methods are called one at a time and must not wait for a client.
type Listener interface {
	Accepted()           // the order is valid; its run waits for a place or has one
	Install(text string) // what an installer of packages says, before the run begins
	Output(entry any)    // one of the reply's outputs, or the update of one
	Clear(cell int)      // the outputs of a cell so far are gone
	File(entry File)     // one of the reply's files
}

// Silence is the listener of those who want the whole reply alone: for it,
// nothing is decoded and nothing is stored while the run goes on.
type Silence struct{}

func (Silence) Accepted()      {}
func (Silence) Install(string) {}
func (Silence) Output(any)     {}
func (Silence) Clear(int)      {}
func (Silence) File(File)      {}

// sink takes what a run produces while it runs; see runner.Sink.
type sink struct {
	keeper  *keeper
	partial *partial
	decoder *notebook.Decoder
	teller  *teller // nil: nobody listens
	files   []File
}

// newSink returns the sink of a run. Its end must be called.
func (x *Executor) newSink(ctx context.Context, p *plan, to Listener) *sink {
	k := &sink{
		keeper:  &keeper{store: x.store, log: x.log, started: p.started, run: p.spec.ID, base: p.base, tempDir: x.intake.Dir(), stall: x.stall},
		partial: newPartial(p.spec),
		decoder: notebook.NewDecoder(decodeLimits(p.spec)),
	}
	if _, nobody := to.(Silence); !nobody {
		k.teller = newTeller(ctx, k.decoder, k.keeper, to)
	}
	return k
}

// end returns when the listener has heard everything. It may be called again.
func (s *sink) end() {
	if s.teller != nil {
		s.teller.end()
	}
}

// urls are those of the blobs that were stored while the run went on, by name;
// after end.
func (s *sink) urls() map[string]string {
	if s.teller == nil {
		return nil
	}
	return s.teller.urls
}

// File is a file that a run created or changed. One that
// could not be stored has an error, its path, name and size.
type File struct {
	Path      string     `json:"path"`
	Name      string     `json:"name"`
	MediaType string     `json:"media_type"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"`
	URL       string     `json:"url"`
	ExpiresAt *time.Time `json:"expires_at"`
	Error     string     `json:"error,omitempty"`
	Retry     bool       `json:"retry,omitempty"`
}

// Output implements runner.Sink.
func (s *sink) Output(e runner.Event) {
	s.partial.add(e)
	if s.teller != nil {
		s.teller.event(e)
	}
}

// File implements runner.Sink: the file goes to the store while it arrives. Its
// error becomes the reason in the outcome's skipped files.
func (s *sink) File(ctx context.Context, name string, content io.Reader) error {
	entry := File{Path: runner.DataFolder + "/" + name, Name: path.Base(name)}
	object, size, err := s.keeper.file(ctx, name, entry.Name, content)
	entry.Bytes = size
	var lost *unstored
	switch {
	case err == nil:
		entry.MediaType, entry.SHA256, entry.URL = object.MediaType, object.SHA256, object.url
		entry.ExpiresAt = new(Stamp(object.expires))
	case errors.As(err, &lost):
		entry.Error, entry.Retry = lost.text, lost.retry
	default:
		return err
	}
	s.files = append(s.files, entry)
	if s.teller != nil {
		s.teller.file(entry)
	}
	return err
}
