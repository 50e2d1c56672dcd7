package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrTooLarge is the error for a file that is larger than it may be.
var ErrTooLarge = errors.New("the file is too large")

// Open gets a file, an image or a notebook by its link. It sends no key: links need none, and
// may lead to a store elsewhere. What it returns must be closed.
func (c *Client) Open(ctx context.Context, link string) (*Content, error) {
	return open(ctx, c.o.HTTP, link)
}

// Fetch reads what Client.Open gets with c: at most so many bytes.
func Fetch(ctx context.Context, c *http.Client, link string, most int64) ([]byte, error) {
	content, err := open(ctx, c, link)
	if err != nil {
		return nil, err
	}
	return content.All(most)
}

func open(ctx context.Context, c *http.Client, link string) (*Content, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("its link was answered with %s", res.Status)
	}
	return contentOf(res), nil
}

// All reads all of the content, at most so many bytes, and closes it.
func (c *Content) All(most int64) ([]byte, error) {
	defer c.Close()
	if c.Bytes > most {
		return nil, ErrTooLarge
	}
	content, err := io.ReadAll(io.LimitReader(c.ReadCloser, most+1))
	if int64(len(content)) > most {
		return nil, ErrTooLarge
	}
	return content, err
}
