package adversarial

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	executePath = "/v1/execute"
	// patience is how long an answer is waited for in all: far above any case's
	// timeout, so that what never ends is told from what is late.
	patience = 5 * time.Minute
	// maxBody is what is read of an answer, bytes: a service that answers more than
	// this is wrong whatever a case expects. 8 MiB of output come twice, as text and
	// as outputs, each escaped to at most six times its size.
	maxBody = 128 << 20
)

// errNoLink is that of a request whose path cannot be known: nothing was sent.
var errNoLink = errors.New("the reply before has no link")

// Client sends the requests of cases to one service.
type Client struct {
	URL string
	// Seen is told of every answer, whatever came of it; nil for nobody.
	Seen func(*Answer)
	// Transport is one without a proxy and without connections that are kept, if
	// it is nil: those would be open files of the service.
	Transport http.RoundTripper
}

// Send sends a request and returns its answers: one, or as many as it asks for at
// once. before is the answer to the request before, whose links a path may name.
// An error means that there was no answer, which is never right.
func (c *Client) Send(ctx context.Context, r *Request, before *Answer) ([]*Answer, error) {
	body, contentType, err := r.body()
	if err != nil {
		return nil, err
	}
	body = bytes.ReplaceAll(body, []byte("{service}"), []byte(strings.TrimPrefix(c.URL, "http://")))
	n := max(1, r.AtOnce)
	answers, errs := make([]*Answer, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i], errs[i] = c.send(ctx, r, before, body, contentType) })
	}
	all.Wait()
	return answers, errors.Join(errs...)
}

func (c *Client) send(ctx context.Context, r *Request, before *Answer, body []byte, contentType string) (*Answer, error) {
	limit := patience
	if r.LeaveAfter > 0 {
		limit = time.Duration(r.LeaveAfter * float64(time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(ctx, r, before, body, contentType)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	client := http.Client{
		Transport:     c.transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a := &Answer{}
	res, err := client.Do(req)
	if err == nil {
		defer res.Body.Close()
		a.Status, a.Header = res.StatusCode, res.Header
		a.Body, err = io.ReadAll(io.LimitReader(res.Body, maxBody+1))
		if err == nil && len(a.Body) > maxBody {
			err = fmt.Errorf("the answer has more than %d bytes", maxBody)
		}
	}
	a.Took = time.Since(begun)
	if c.Seen != nil {
		c.Seen(a)
	}
	if err != nil && r.LeaveAfter > 0 && ctx.Err() != nil {
		a.Left = true
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("no answer after %v: %w", a.Took, err)
	}
	a.parse()
	return a, nil
}

func (c *Client) transport() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	return direct()
}

func direct() http.RoundTripper { return &http.Transport{DisableKeepAlives: true} }

func (c *Client) request(ctx context.Context, r *Request, before *Answer, body []byte, contentType string) (*http.Request, error) {
	method, url := r.Method, c.URL+executePath
	if method == "" {
		method = http.MethodPost
	}
	if r.Path != "" {
		url = c.URL + r.Path
	}
	if to, rest, ok := strings.Cut(strings.TrimPrefix(r.Path, "{"), "}"); ok && r.Path[0] == '{' {
		link := before.link(to)
		if link == "" {
			return nil, fmt.Errorf("%w to %s", errNoLink, to)
		}
		url = link + rest
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
		if r.Chunked {
			reader = io.MultiReader(reader) // whose length net/http does not know
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range r.Headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// body returns what is sent and what it is, unless the headers say otherwise.
func (r *Request) body() (body []byte, contentType string, err error) {
	contentType = "application/json"
	switch {
	case r.Raw != nil:
		body = []byte(*r.Raw)
	case r.Base64 != "":
		if body, err = base64.StdEncoding.DecodeString(r.Base64); err != nil {
			return nil, "", fmt.Errorf("base64: %w", err)
		}
	case r.Generate != nil:
		g := r.Generate
		body = []byte(g.Prefix + strings.Repeat(g.Repeat, g.Times) + g.Suffix)
	case r.Code != "" || r.Cells != nil || r.Fields != nil:
		if body, err = r.json(); err != nil {
			return nil, "", err
		}
	default:
		return nil, "", nil
	}
	if !r.Gzip {
		return body, contentType, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(body)
	return packed.Bytes(), contentType, errors.Join(err, w.Close())
}

func (r *Request) json() ([]byte, error) {
	fields := map[string]any{}
	for name, value := range r.Fields {
		fields[name] = value
	}
	if r.Code != "" {
		fields["code"] = r.Code
	}
	if r.Cells != nil {
		fields["cells"] = r.Cells
	}
	if r.Timeout != 0 {
		fields["timeout"] = r.Timeout
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("the fields: %w", err)
	}
	return body, nil
}
