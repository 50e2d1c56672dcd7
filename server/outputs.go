package server

import (
	"bytes"
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
	Cell int                 `json:"cell"`
	Type notebook.OutputType `json:"type"`
	Name string              `json:"name"`
	Text string              `json:"text"`
}

type bundleOutput struct {
	Cell int                 `json:"cell"`
	Type notebook.OutputType `json:"type"`
	Data map[string]any      `json:"data"` // string, JSON, or blobLink
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
func blobsOf(r *notebook.Result) []*notebook.Blob {
	var out []*notebook.Blob
	for _, o := range r.Outputs {
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

// keep stores the notebook and the blobs. What could not be stored has no link.
func (s *Server) keep(ctx context.Context, k *keeper, executed []byte, blobs []*notebook.Blob) (*notebookLink, map[*notebook.Blob]string) {
	var link *notebookLink
	found := make([]string, len(blobs))
	var group errgroup.Group
	group.SetLimit(storeAtOnce)
	put := func(kind storage.Kind, name string, content []byte) string {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		object, err := k.put(ctx, kind, name, name, bytes.NewReader(content))
		if err != nil {
			return ""
		}
		return object.url
	}
	if executed != nil {
		group.Go(func() error {
			if url := put(storage.KindNotebook, "notebook.ipynb", executed); url != "" {
				link = &notebookLink{url}
			}
			return nil
		})
	}
	for i, b := range blobs {
		group.Go(func() error {
			found[i] = put(storage.KindImage, b.Name, b.Bytes)
			return nil
		})
	}
	_ = group.Wait() // each says for itself how it went
	urls := map[*notebook.Blob]string{}
	for i, b := range blobs {
		urls[b] = found[i]
	}
	return link, urls
}

func outputsOf(r *notebook.Result, urls map[*notebook.Blob]string) []any {
	out := []any{}
	for _, o := range r.Outputs {
		switch o.Type {
		case notebook.TypeStream:
			out = append(out, streamOutput{o.Cell, o.Type, o.Name, o.Text})
		case notebook.TypeError:
			out = append(out, errorOutput{o.Cell, o.Type, o.Name, o.Message, o.Traceback})
		default:
			out = append(out, bundleOutput{o.Cell, o.Type, bundle(o.Data, urls)})
		}
	}
	return out
}

func bundle(data map[string]notebook.Datum, urls map[*notebook.Blob]string) map[string]any {
	out := map[string]any{}
	for mediaType, d := range data {
		switch {
		case d.Blob != nil:
			out[mediaType] = blobLink{d.Blob.Name, urls[d.Blob]}
		case d.Text != nil:
			out[mediaType] = *d.Text
		case json.Valid(d.JSON): // as notebook promises; a reply must not fail by it
			out[mediaType] = d.JSON
		}
	}
	return out
}

func imagesOf(blobs []*notebook.Blob, urls map[*notebook.Blob]string, linkOnly bool) []imageEntry {
	out := []imageEntry{}
	for _, b := range blobs {
		if !strings.HasPrefix(b.MediaType, "image/") {
			continue
		}
		entry := imageEntry{b.Name, b.MediaType, len(b.Bytes), b.Width, b.Height, urls[b], nil}
		if !linkOnly {
			entry.Data = b.Bytes
		}
		out = append(out, entry)
	}
	return out
}
