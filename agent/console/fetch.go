package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// fetchTime bounds the wait for one image.
const fetchTime = 20 * time.Second

// fetch gets an image by a link that notebox issued. No key is sent: links need none,
// and may lead to a store elsewhere.
func fetch(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its link was answered with %s", res.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxPictureBytes+1))
	if err == nil && len(raw) > maxPictureBytes {
		err = errTooLarge
	}
	return raw, err
}
