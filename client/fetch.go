package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrTooLarge is Fetch's error for a file that is larger than it may be.
var ErrTooLarge = errors.New("the file is too large")

// Fetch gets a file or an image by its link: at most so many bytes. It sends no key:
// links need none, and may lead to a store elsewhere.
func Fetch(ctx context.Context, c *http.Client, link string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its link was answered with %s", res.Status)
	}
	if res.ContentLength > most {
		return nil, ErrTooLarge
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if int64(len(content)) > most {
		return nil, ErrTooLarge
	}
	return content, err
}
