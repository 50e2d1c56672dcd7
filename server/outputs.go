package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"notebox/notebook"
	"notebox/storage"
)

// storeAtOnce is how many images of one run are stored at one time.
const storeAtOnce = 4

type streamOutput struct {
	Cell     int                 `json:"cell"`
	Type     notebook.OutputType `json:"type"`
	Name     string              `json:"name"`
	Text     string              `json:"text"`
	Replaced int                 `json:"replaced_lines,omitempty"` // of an event alone
}

type bundleOutput struct {
	Cell int                 `json:"cell"`
	Type notebook.OutputType `json:"type"`
	Data map[string]any      `json:"data"` // string, JSON, or blobLink

	// of an event alone
	DisplayID string `json:"display_id,omitempty"`
	Update    bool   `json:"update,omitempty"` // of all that has this DisplayID
}

type errorOutput struct {
	Cell      int                 `json:"cell"`
	Type      notebook.OutputType `json:"type"`
	Name      string              `json:"name"`
	Message   string              `json:"message"`
	Traceback string              `json:"traceback"`
}

type blobLink struct {
	Name string `json:"name"`
	URL  string `json:"url"` // empty where it could not be stored
}

type imageEntry struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	URL       string `json:"url"`
	Data      []byte `json:"data,omitempty"` // base64
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
	n, _ := strconv.Atoi(digits) // 0 where there is none
	return n
}

// keep stores the notebook, and the blobs whose URLs are not known yet by their
// names. What could not be stored has no link.
func (s *Server) keep(ctx context.Context, k *keeper, executed []byte, blobs []*notebook.Blob, known map[string]string) (*notebookLink, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, storeAllTime)
	defer cancel()
	var link *notebookLink
	found := make([]string, len(blobs))
	var group errgroup.Group
	group.SetLimit(storeAtOnce)
	if executed != nil {
		group.Go(func() error {
			if url := k.keep(ctx, storeTime, storage.KindNotebook, "notebook.ipynb", executed); url != "" {
				link = &notebookLink{url}
			}
			return nil
		})
	}
	for i, b := range blobs {
		if found[i] = known[b.Name]; found[i] != "" {
			continue
		}
		group.Go(func() error {
			found[i] = k.keep(ctx, storeTime, storage.KindImage, b.Name, b.Bytes)
			return nil
		})
	}
	_ = group.Wait() // each says for itself how it went
	urls := map[string]string{}
	for i, b := range blobs {
		urls[b.Name] = found[i]
	}
	return link, urls
}

func outputsOf(r *notebook.Result, urls map[string]string) []any {
	out := []any{}
	for _, o := range r.Outputs {
		out = append(out, outputOf(o, urls, false))
	}
	return out
}

// outputOf is an entry of the reply's outputs, or of the events, where it may be
// the update of one. urls are those of the blobs, by name.
func outputOf(o notebook.Output, urls map[string]string, update bool) any {
	switch o.Type {
	case notebook.TypeStream:
		return streamOutput{o.Cell, o.Type, o.Name, o.Text, o.Replaced}
	case notebook.TypeError:
		return errorOutput{o.Cell, o.Type, o.Name, o.Message, o.Traceback}
	default:
		return bundleOutput{o.Cell, o.Type, bundle(o.Data, urls), o.DisplayID, update}
	}
}

func bundle(data map[string]notebook.Datum, urls map[string]string) map[string]any {
	out := map[string]any{}
	for mediaType, d := range data {
		switch {
		case d.Blob != nil:
			out[mediaType] = blobLink{d.Blob.Name, urls[d.Blob.Name]}
		case d.Text != nil:
			out[mediaType] = *d.Text
		case json.Valid(d.JSON): // as notebook promises; a reply must not fail by it
			out[mediaType] = d.JSON
		}
	}
	return out
}

func imagesOf(blobs []*notebook.Blob, urls map[string]string, linkOnly bool) []imageEntry {
	out := []imageEntry{}
	for _, b := range blobs {
		if !strings.HasPrefix(b.MediaType, "image/") {
			continue
		}
		entry := imageEntry{b.Name, b.MediaType, len(b.Bytes), b.Width, b.Height, urls[b.Name], nil}
		if !linkOnly {
			entry.Data = b.Bytes
		}
		out = append(out, entry)
	}
	return out
}
