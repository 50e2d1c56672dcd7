package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"notebox/agent"
	"notebox/agent/tool"
)

// Options say where a notebox is.
type Options struct {
	BaseURL string       // "http://127.0.0.1:8080"
	Key     string       // API key; "": none
	Client  *http.Client // nil: http.DefaultClient; ctx has the limit of time
}

// Client is a notebox over HTTP. It may be used concurrently.
type Client struct{ o Options }

var _ agent.Sessions = (*Client)(nil)

// New returns a Client.
func New(o Options) *Client {
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return &Client{o}
}

const (
	// tries is how often a full service is asked, as it says when to come back.
	tries = 5
	// maxPause bounds what Retry-After may ask for.
	maxPause = 30 * time.Second
	// maxAnswer bounds an answer, in bytes: text and outputs of a run, without images.
	maxAnswer = 64 << 20
)

// Execute implements agent.Executor.
func (c *Client) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	fields := [][2]string{{"code", r.Code}}
	if r.Session != "" {
		fields = append(fields, [2]string{"session", r.Session})
	} else if r.Language != "" {
		fields = append(fields, [2]string{"language", r.Language})
	}
	if len(r.Dependencies) > 0 {
		list, err := json.Marshal(r.Dependencies)
		if err != nil {
			return nil, fmt.Errorf("notebox: %w", err)
		}
		fields = append(fields, [2]string{packagesField, string(list)})
	}
	if r.Timeout > 0 {
		fields = append(fields, [2]string{"timeout", strconv.FormatFloat(r.Timeout.Seconds(), 'f', -1, 64)})
	}
	res, err := c.postForm(ctx, "/v1/execute?images=url", fields, r.Files, r.Tell != nil)
	if err != nil {
		return nil, ofRun(err, r)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		result, err := readEvents(res.Body, r.Tell)
		return result, ofRun(err, r)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	result, err := tool.ReadResult(raw)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	return &result, nil
}

// OpenSession implements agent.Sessions.
func (c *Client) OpenSession(ctx context.Context, language string, files []agent.File) (string, error) {
	if language == "" {
		language = "python"
	}
	res, err := c.postForm(ctx, "/v1/sessions", [][2]string{{"language", language}}, files, false)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var session struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&session); err != nil || session.ID == "" {
		return "", fmt.Errorf("notebox: the answer names no session: %w", err)
	}
	return session.ID, nil
}

// CloseSession implements agent.Sessions.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.o.BaseURL+"/v1/sessions/"+url.PathEscape(id), nil)
	if err != nil {
		return fmt.Errorf("notebox: %w", err)
	}
	res, err := c.do(req)
	if err == nil {
		res.Body.Close()
	}
	if isGone(err) {
		return nil
	}
	return err
}

// postForm sends fields and files, again where the service is full.
func (c *Client) postForm(ctx context.Context, path string, fields [][2]string, files []agent.File, events bool) (*http.Response, error) {
	for try := 1; ; try++ {
		res, err := c.postOnce(ctx, path, fields, files, events)
		full, ok := err.(*Error)
		if !ok || full.ofPackages() || full.RetryAfter == 0 || full.RetryAfter > maxPause || try == tries {
			return res, err
		}
		select {
		case <-time.After(full.RetryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) postOnce(ctx context.Context, path string, fields [][2]string, files []agent.File, events bool) (*http.Response, error) {
	body, w := io.Pipe()
	defer body.Close() // ends the writer, where the answer came before the whole form
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

func write(form *multipart.Writer, fields [][2]string, files []agent.File) error {
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

func writeFile(form *multipart.Writer, f agent.File) error {
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

// do sends a request; an answer that is none of 2xx is an *Error.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.o.Client.Do(req)
	if err != nil {
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		return nil, fmt.Errorf("notebox: %w", err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, problemOf(res)
}
