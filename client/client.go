package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say where a notebox is.
type Options struct {
	BaseURL string       // "http://127.0.0.1:8080"
	Key     string       // API key; "": none
	HTTP    *http.Client // nil: http.DefaultClient; ctx has the limit of time
	Once    bool         // a full notebox is not asked again
}

// Client is a notebox over HTTP. It may be used concurrently.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	o.HTTP = cmp.Or(o.HTTP, http.DefaultClient)
	return &Client{o}
}

// maxAnswer bounds an answer, in bytes: text, outputs and images of a run.
const maxAnswer = 64 << 20

// DataFolder is where code finds and leaves its files. Paths of files begin with it and a slash.
const DataFolder = "/mnt/data"

// Run is code to be executed. One of Code, Notebook and Entrypoint is given.
type Run struct {
	Code       string
	Notebook   []byte // an .ipynb, whose code cells are run
	Entrypoint string // which of Files is the program
	Language   string // "": the notebook's, that of the entrypoint's name, the session's, or the service's default
	Env        map[string]string
	Network    bool
	Timeout    time.Duration // 0: the service's default
	Files      []File        // to be put in /mnt/data before
	Session    string        // to run in; "": a sandbox of its own
	Images     bool          // Result.Raw has the bytes of images, in base64
	// Dependencies are packages to be installed, in the language's notation; never of a
	// run in a session.
	Dependencies []string
	Listener     *Listener // is told of the run as it goes on; may be nil
}

// File is one for /mnt/data.
type File struct {
	Name string // relative to /mnt/data, may have folders
	// Open is called for each try to send the file.
	Open func() (io.ReadCloser, error)
}

// Execute runs code and returns what became of it, whatever the code did.
func (c *Client) Execute(ctx context.Context, r Run) (*Result, error) {
	var fields form
	if len(r.Notebook) == 0 && r.Entrypoint == "" {
		fields = form{{"code", r.Code}} // also if it is empty: the service says so
	}
	fields.text("notebook", string(r.Notebook))
	fields.text("entrypoint", r.Entrypoint)
	fields.text("session", r.Session)
	fields.text("language", r.Language)
	fields.seconds("timeout", r.Timeout)
	fields.list(dependenciesField, r.Dependencies)
	fields.variables("env", r.Env)
	if r.Network {
		fields.text("network", "true")
	}
	path := "/v1/execute"
	if !r.Images {
		path += "?images=url"
	}
	res, err := c.postForm(ctx, path, fields, r.Files, r.Listener != nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(res.Body, r.Listener)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, unread(err)
	}
	return readResult(raw)
}

// Cancel interrupts a run that goes on, and ends it a second later: it has a result then, with all
// that came until then.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.end(ctx, http.MethodDelete, "/v1/executions/"+url.PathEscape(id)+"?interrupt=true")
}

// end sends a request whose answer says nothing more.
func (c *Client) end(ctx context.Context, method, path string) error {
	res, err := c.call(ctx, method, path, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Environments asks what the notebox runs, and within which limits.
func (c *Client) Environments(ctx context.Context) (*Environments, error) {
	all := new(Environments)
	return all, c.get(ctx, "/v1/environments", all)
}

// Ready returns no error if the notebox can run code now. The Pool is nil if the notebox
// does not tell.
func (c *Client) Ready(ctx context.Context) (*Pool, error) {
	var answer struct{ Pool *Pool }
	err := c.get(ctx, "/readyz", &answer)
	return answer.Pool, err
}

// get decodes what a GET is answered with.
func (c *Client) get(ctx context.Context, path string, into any) error {
	res, err := c.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decode(res, into)
}

// call sends a request. body may be nil.
func (c *Client) call(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.o.BaseURL+path, body)
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
		return nil, fmt.Errorf("notebox: %w", err) // which hides a password in the URL
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
		return unread(err)
	}
	return nil
}
