package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"time"
)

const (
	// tries is how often a full service is asked, as it says when to come back.
	tries = 5
	// maxPause bounds what Retry-After may ask for.
	maxPause = 30 * time.Second
)

// form is the fields of a request, and their values.
type form [][2]string

func (f *form) text(name, value string) {
	if value != "" {
		*f = append(*f, [2]string{name, value})
	}
}

func (f *form) seconds(name string, d time.Duration) {
	if d != 0 {
		f.text(name, strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
	}
}

func (f *form) list(name string, list []string) {
	if len(list) > 0 {
		raw, _ := json.Marshal(list) // strings
		f.text(name, string(raw))
	}
}

func (f *form) variables(name string, all map[string]string) {
	if len(all) > 0 {
		raw, _ := json.Marshal(all) // strings
		f.text(name, string(raw))
	}
}

// postForm sends fields and files, again if the service is full.
func (c *Client) postForm(ctx context.Context, path string, fields form, files []File, events bool) (*http.Response, error) {
	for try := 1; ; try++ {
		res, err := c.postOnce(ctx, path, fields, files, events)
		full, ok := err.(*Error)
		if !ok || full.OfDependencies() || full.RetryAfter == 0 || full.RetryAfter > maxPause || try == tries || c.o.Once {
			return res, err
		}
		select {
		case <-time.After(full.RetryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) postOnce(ctx context.Context, path string, fields form, files []File, events bool) (*http.Response, error) {
	if len(fields)+len(files) == 0 { // a form without a part is none
		return c.call(ctx, http.MethodPost, path, nil)
	}
	text := new(bytes.Buffer)
	var body io.Reader = text
	parts := multipart.NewWriter(text)
	if len(files) == 0 { // a form of known length needs no place among notebox's large requests
		_ = write(parts, fields, nil) // a buffer takes all
	} else {
		r, w := io.Pipe()
		defer r.Close() // ends the writer if the answer came before the whole form
		body, parts = r, multipart.NewWriter(w)
		go func() { w.CloseWithError(write(parts, fields, files)) }()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.BaseURL+path, body)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	req.Header.Set("Content-Type", parts.FormDataContentType())
	if events {
		req.Header.Set("Accept", "text/event-stream, application/json;q=0.5")
	}
	return c.do(req)
}

func write(parts *multipart.Writer, fields form, files []File) error {
	for _, f := range fields {
		if err := parts.WriteField(f[0], f[1]); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := writeFile(parts, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Name, err)
		}
	}
	return parts.Close()
}

func writeFile(parts *multipart.Writer, f File) error {
	part, err := parts.CreateFormFile("files", f.Name)
	if err != nil {
		return err
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(part, content)
	return err
}
