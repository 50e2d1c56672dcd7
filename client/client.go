package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Options say where a notebox is.
type Options struct {
	BaseURL string       // "http://127.0.0.1:8080"
	Key     string       // API key; "": none
	HTTP    *http.Client // nil: http.DefaultClient; ctx has the limit of time
}

// Client is a notebox over HTTP. It may be used concurrently.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	return &Client{o}
}

// maxAnswer bounds an answer, in bytes: text and outputs of a run, without images.
const maxAnswer = 64 << 20

// Run is code to be executed.
type Run struct {
	Code     string
	Language string        // "": the service's default
	Timeout  time.Duration // 0: the service's default
	Files    []File        // to be put in /mnt/data before
	Session  string        // to run in; "": a sandbox of its own
	// Dependencies are packages to be installed, in the language's notation; never of a
	// run in a session.
	Dependencies []string
	// Tell is called with what the program puts out, and before it what is said of
	// installing, as it comes, from the goroutine of Execute. It may be nil.
	Tell func(text string)
}

// File is one for /mnt/data.
type File struct {
	Name string // relative to /mnt/data, may have folders
	// Open is called for each try to send the file.
	Open func() (io.ReadCloser, error)
}

// Execute runs code and returns what became of it, whatever the code did.
func (c *Client) Execute(ctx context.Context, r Run) (*Result, error) {
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
		fields = append(fields, [2]string{dependenciesField, string(list)})
	}
	if r.Timeout > 0 {
		fields = append(fields, [2]string{"timeout", strconv.FormatFloat(r.Timeout.Seconds(), 'f', -1, 64)})
	}
	res, err := c.postForm(ctx, "/v1/execute?images=url", fields, r.Files, r.Tell != nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(res.Body, r.Tell)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	return readResult(raw)
}

// OpenSession starts a sandbox that lives on, with files in /mnt/data, and returns its id.
func (c *Client) OpenSession(ctx context.Context, language string, files ...File) (id string, err error) {
	if language == "" {
		language = "python"
	}
	res, err := c.postForm(ctx, "/v1/sessions", [][2]string{{"language", language}}, files, false)
	if err != nil {
		return "", err
	}
	var session struct {
		ID string `json:"id"`
	}
	if err := decode(res, &session); err != nil {
		return "", err
	}
	if session.ID == "" {
		return "", errors.New("notebox: the answer names no session")
	}
	return session.ID, nil
}

// CloseSession ends a session. It is no error if the session is gone already.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	res, err := c.call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id))
	var e *Error
	if errors.As(err, &e) && e.NotThere() {
		return nil
	}
	if err == nil {
		res.Body.Close()
	}
	return err
}

// Environments asks what the notebox runs, and within which limits.
func (c *Client) Environments(ctx context.Context) (*Environments, error) {
	res, err := c.call(ctx, http.MethodGet, "/v1/environments")
	if err != nil {
		return nil, err
	}
	all := new(Environments)
	return all, decode(res, all)
}

// Ready returns no error if the notebox can run code now. The Pool is nil if the notebox
// does not tell.
func (c *Client) Ready(ctx context.Context) (*Pool, error) {
	res, err := c.call(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return nil, err
	}
	var answer struct{ Pool *Pool }
	err = decode(res, &answer)
	return answer.Pool, err
}

// call sends a request without a body.
func (c *Client) call(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.o.BaseURL+path, nil)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	return c.do(req)
}

// do sends a request; an answer that is none of 2xx is an *Error.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.o.HTTP.Do(req)
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

// decode reads an answer in JSON to its end.
func decode(res *http.Response, into any) error {
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("notebox: what answers is none: %w", err)
	}
	return nil
}
