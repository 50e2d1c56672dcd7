package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxReply bounds what is read of one answer, in bytes: the images of a run in base64.
	maxReply = 64 << 20
	// maxDetail bounds what is told of an error that is no problem+json.
	maxDetail = 500
)

// Doer sends requests to notebox; *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// API is the native API at an address, as one caller sees it.
type API struct {
	Doer Doer
	Base string      // http://127.0.0.1:8080
	Head http.Header // of every request: the key
	Host string      // the Host header; "" is that of Base
}

// Refusal is an answer of the API that is an error.
type Refusal struct {
	Status int
	Detail string
}

func (r *Refusal) Error() string { return r.Detail }

// send returns the answer, whose body must be closed, or a *Refusal.
func (a API) send(ctx context.Context, method, path, contentType string, body io.Reader, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.Base, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	for name, values := range a.Head {
		req.Header[name] = values
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if a.Host != "" {
		req.Host = a.Host
	}
	resp, err := a.Doer.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("notebox is not reached at %s: %w", a.Base, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusalOf(resp)
}

func refusalOf(resp *http.Response) *Refusal {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var p struct{ Detail string }
	if json.Unmarshal(raw, &p) != nil || p.Detail == "" {
		p.Detail = fmt.Sprintf("%s %s", resp.Status, raw[:min(len(raw), maxDetail)])
	}
	return &Refusal{resp.StatusCode, strings.ToValidUTF8(p.Detail, "")}
}

// call sends in as JSON, unless it is nil, and decodes the answer into out, unless nil.
func (a API) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	contentType := ""
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("notebox: %w", err)
		}
		body, contentType = bytes.NewReader(raw), "application/json"
	}
	resp, err := a.send(ctx, method, path, contentType, body, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	return decode(resp.Body, out)
}

var errReply = errors.New("notebox's answer cannot be read")

func decode(r io.Reader, out any) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxReply+1))
	if err != nil || len(raw) > maxReply {
		return errors.Join(errReply, err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return errors.Join(errReply, err)
	}
	return nil
}
