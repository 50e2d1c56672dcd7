package client

import (
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"time"
)

const (
	// tries is how often a full service is asked, as it says when to come back.
	tries = 5
	// maxPause bounds what Retry-After may ask for.
	maxPause = 30 * time.Second
)

// postForm sends fields and files, again if the service is full.
func (c *Client) postForm(ctx context.Context, path string, fields [][2]string, files []File, events bool) (*http.Response, error) {
	for try := 1; ; try++ {
		res, err := c.postOnce(ctx, path, fields, files, events)
		full, ok := err.(*Error)
		if !ok || full.OfDependencies() || full.RetryAfter == 0 || full.RetryAfter > maxPause || try == tries {
			return res, err
		}
		select {
		case <-time.After(full.RetryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) postOnce(ctx context.Context, path string, fields [][2]string, files []File, events bool) (*http.Response, error) {
	body, w := io.Pipe()
	defer body.Close() // ends the writer if the answer came before the whole form
	form := multipart.NewWriter(w)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.BaseURL+path, body)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	if events {
		req.Header.Set("Accept", "text/event-stream, application/json;q=0.5")
	}
	go func() { w.CloseWithError(write(form, fields, files)) }()
	return c.do(req)
}

func write(form *multipart.Writer, fields [][2]string, files []File) error {
	for _, f := range fields {
		if err := form.WriteField(f[0], f[1]); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := writeFile(form, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Name, err)
		}
	}
	return form.Close()
}

func writeFile(form *multipart.Writer, f File) error {
	part, err := form.CreateFormFile("files", f.Name)
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
