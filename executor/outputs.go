package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"notebox/notebook"
	"notebox/storage"
)

// storeAtOnce is how many images of one run are stored at one time.
const storeAtOnce = 4

// StreamOutput is text of stdout or stderr.
type StreamOutput struct {
	Cell     int                 `json:"cell"`
	Type     notebook.OutputType `json:"type"`
	Name     string              `json:"name"`
	Text     string              `json:"text"`
	Replaced int                 `json:"replaced_lines,omitempty"` // of an event alone
}

type BundleOutput struct {
	Cell int                 `json:"cell"`
	Type notebook.OutputType `json:"type"`
	Data map[string]any      `json:"data"` // string, JSON, or BlobLink

	// of an event alone
	DisplayID string `json:"display_id,omitempty"`
	Update    bool   `json:"update,omitempty"` // of all that has this DisplayID
}

type ErrorOutput struct {
	Cell      int                 `json:"cell"`
	Type      notebook.OutputType `json:"type"`
	Name      string              `json:"name"`
	Message   string              `json:"message"`
	Traceback string              `json:"traceback"`
}

// BlobLink is where an image or another blob of an output is.
type BlobLink struct {
	Name string `json:"name"`
	URL  string `json:"url"` // empty if it could not be stored
}

type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	URL       string `json:"url"`
	Data      []byte `json:"data,omitempty"` // base64
	Error     string `json:"error,omitempty"`
	Retry     bool   `json:"retry,omitempty"`
}

// blobsOf lists what is to be stored, in order of appearance.
func blobsOf(outputs ...notebook.Output) []*notebook.Blob {
	var out []*notebook.Blob
	for _, o := range outputs {
		start := len(out)
		for _, d := range o.Data {
			if d.Blob != nil {
				out = append(out, d.Blob)
			}
		}
		slices.SortFunc(out[start:], func(a, b *notebook.Blob) int {
			return cmp.Or(cmp.Compare(number(a.Name), number(b.Name)), cmp.Compare(a.Name, b.Name))
		})
	}
	return out
}

// number is the count in a blob's name, image_12.png.
func number(name string) int {
	_, after, _ := strings.Cut(name, "_")
	digits, _, _ := strings.Cut(after, ".")
	n, _ := strconv.Atoi(digits) // 0 if there is none
	return n
}

// notebookName is what the executed notebook is called.
const notebookName = "notebook.ipynb"

// kept is what became of a run's notebook and blobs, by name: each has a URL, or the
// reason why it has none.
type kept struct {
	urls map[string]string
	lost map[string]*unstored
}

// keep stores the notebook, and the blobs whose URLs are not known yet by their names.
func (x *Executor) keep(ctx context.Context, k *keeper, executed []byte, blobs []*notebook.Blob, known map[string]string) kept {
	ctx, cancel := context.WithTimeout(ctx, storeAllTime)
	defer cancel()
	out := kept{urls: map[string]string{}, lost: map[string]*unstored{}}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(storeAtOnce)
	put := func(kind storage.Kind, name string, content []byte) {
		group.Go(func() error {
			url, lost := k.keep(ctx, storeTime, kind, name, content)
			mu.Lock()
			defer mu.Unlock()
			if out.urls[name] = url; lost != nil {
				out.lost[name] = lost
			}
			return nil
		})
	}
	if executed != nil {
		put(storage.KindNotebook, notebookName, executed)
	}
	for _, b := range blobs {
		if url := known[b.Name]; url == "" {
			put(storage.KindImage, b.Name, b.Bytes)
		} else {
			mu.Lock()
			out.urls[b.Name] = url
			mu.Unlock()
		}
	}
	_ = group.Wait() // each says for itself how it went
	return out
}

// outputOf is an entry of the reply's outputs, or of the events, if it may be
// the update of one. urls are those of the blobs, by name.
func outputOf(o notebook.Output, urls map[string]string, update bool) any {
	switch o.Type {
	case notebook.TypeStream:
		return StreamOutput{o.Cell, o.Type, o.Name, o.Text, o.Replaced}
	case notebook.TypeError:
		return ErrorOutput{o.Cell, o.Type, o.Name, o.Message, o.Traceback}
	default:
		return BundleOutput{o.Cell, o.Type, bundle(o.Data, urls), o.DisplayID, update}
	}
}

func bundle(data map[string]notebook.Datum, urls map[string]string) map[string]any {
	out := map[string]any{}
	for mediaType, d := range data {
		switch {
		case d.Blob != nil:
			out[mediaType] = BlobLink{d.Blob.Name, urls[d.Blob.Name]}
		case d.Text != nil:
			out[mediaType] = *d.Text
		case json.Valid(d.JSON): // as notebook promises; a reply must not fail by it
			out[mediaType] = d.JSON
		}
	}
	return out
}

func imagesOf(blobs []*notebook.Blob, k kept, linkOnly bool) []Image {
	out := []Image{}
	for _, b := range blobs {
		if !strings.HasPrefix(b.MediaType, "image/") {
			continue
		}
		entry := Image{
			Name: b.Name, MediaType: b.MediaType, Bytes: len(b.Bytes), Width: b.Width, Height: b.Height, URL: k.urls[b.Name],
		}
		if lost := k.lost[b.Name]; lost != nil {
			entry.Error, entry.Retry = lost.text, lost.retry
		}
		if !linkOnly {
			entry.Data = b.Bytes
		}
		out = append(out, entry)
	}
	return out
}
