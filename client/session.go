package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// SessionOptions are what a session is opened with.
type SessionOptions struct {
	Language     string        // "": the service's default
	TTL          time.Duration // 0: the service's default
	Files        []File        // to be put in /mnt/data
	Dependencies []string      // packages to be installed, in the language's notation
}

// Session is a sandbox that lives on.
type Session struct {
	ID          string    `json:"id"`
	Language    string    `json:"language"`
	ExpiresAt   time.Time `json:"expires_at"`
	IdleSeconds float64   `json:"idle_seconds"` // without a call until it ends
	Status      string    `json:"status"`       // idle or running
}

// OpenSession starts a sandbox that lives on.
func (c *Client) OpenSession(ctx context.Context, o SessionOptions) (*Session, error) {
	var fields form
	fields.text("language", o.Language)
	fields.seconds("ttl", o.TTL)
	fields.list(dependenciesField, o.Dependencies)
	res, err := c.postForm(ctx, "/v1/sessions", fields, o.Files, false)
	if err != nil {
		return nil, err
	}
	session := new(Session)
	if err = decode(res, session); err == nil && session.ID == "" {
		err = errors.New("notebox: the answer names no session")
	}
	return session, err
}

// CloseSession ends a session.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	return c.end(ctx, http.MethodDelete, sessionPath(id))
}

// Interrupt ends what runs in a session, which keeps its variables. Its run has a result.
func (c *Client) Interrupt(ctx context.Context, id string) error {
	return c.end(ctx, http.MethodPost, sessionPath(id)+"/interrupt")
}

// Sessions lists the caller's.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	var list struct{ Sessions []Session }
	err := c.get(ctx, "/v1/sessions", &list)
	return list.Sessions, err
}

// FileList is what a folder of a session has.
type FileList struct {
	Files []FileEntry `json:"files"`
	More  bool        `json:"more"` // than there are in Files
}

// FileEntry is a file or folder of a session.
type FileEntry struct {
	Path       string    `json:"path"`
	Kind       string    `json:"kind"`
	Bytes      int64     `json:"bytes"`
	MediaType  *string   `json:"media_type"` // nil: it is no file
	ModifiedAt time.Time `json:"modified_at"`
}

// Content is that of a file. It must be closed.
type Content struct {
	io.ReadCloser
	MediaType string
	Bytes     int64 // -1: not known
}

// ListFiles lists what is in a folder of a session, and below it; "" is all of /mnt/data.
func (c *Client) ListFiles(ctx context.Context, session, folder string) (list FileList, err error) {
	query := url.Values{"recursive": {"true"}}
	if folder != "" {
		query.Set("path", folder)
	}
	err = c.get(ctx, sessionPath(session)+"/files?"+query.Encode(), &list)
	return list, err
}

// ReadFile returns a file of a session. path is relative to /mnt/data, here and below.
func (c *Client) ReadFile(ctx context.Context, session, path string) (*Content, error) {
	res, err := c.call(ctx, http.MethodGet, filePath(session, path), nil)
	if err != nil {
		return nil, err
	}
	return contentOf(res), nil
}

func contentOf(res *http.Response) *Content {
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return &Content{res.Body, mediaType, res.ContentLength}
}

// WriteFile makes or replaces a file of a session.
func (c *Client) WriteFile(ctx context.Context, session, path string, content io.Reader) (*FileEntry, error) {
	res, err := c.call(ctx, http.MethodPut, filePath(session, path), content)
	if err != nil {
		return nil, err
	}
	written := new(FileEntry)
	return written, decode(res, written)
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// filePath is where a file of a session is in the API.
func filePath(session, path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
		if parts[i] == "." || parts[i] == ".." { // for the API to refuse: no client cleans it
			parts[i] = strings.ReplaceAll(parts[i], ".", "%2E")
		}
	}
	return sessionPath(session) + "/files/" + strings.Join(parts, "/")
}
