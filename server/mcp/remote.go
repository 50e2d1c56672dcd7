package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"notebox/agent/tool"
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

// API is the Service of a notebox elsewhere: its native API, as one caller sees it.
type API struct {
	Doer Doer
	Base string      // http://127.0.0.1:8080
	Head http.Header // of every request: the key
}

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

// environmentList is what is read of GET /v1/environments.
type environmentList struct {
	Environments []environment
	Limits       struct {
		Timeout    float64 `json:"timeout_seconds"`
		MaxTimeout float64 `json:"max_timeout_seconds"`
		Network    bool
		Sessions   *bool
	}
}

type environment struct {
	Language    string
	Available   *bool
	DisplayName string `json:"display_name"`
	Packages    []struct{ Name string }
	Notes       []string

	Dependencies struct { // no Notation: requests for it have none
		Notation string
		Allowed  []string
	}
}

// About implements Service. A notebox of before has all images, and sessions.
func (a API) About(ctx context.Context) (About, error) {
	var list environmentList
	if err := a.call(ctx, "GET", "/v1/environments", nil, &list); err != nil {
		return About{}, err
	}
	about := About{Sessions: list.Limits.Sessions == nil || *list.Limits.Sessions}
	about.Timeout, about.MaxTimeout, about.Network = secondsOf(list.Limits.Timeout), secondsOf(list.Limits.MaxTimeout), list.Limits.Network
	for _, e := range list.Environments {
		if e.Available != nil && !*e.Available {
			continue
		}
		l := tool.Language{Name: e.Language, Title: e.DisplayName, Notes: e.Notes, Dependencies: e.Dependencies.Notation, Allowed: e.Dependencies.Allowed}
		for _, p := range e.Packages {
			l.Packages = append(l.Packages, p.Name)
		}
		about.Languages = append(about.Languages, l)
	}
	return about, nil
}

// OpenSession implements Service.
func (a API) OpenSession(ctx context.Context, r SessionRequest) (*OpenedSession, error) {
	opened := new(OpenedSession)
	return opened, a.call(ctx, "POST", "/v1/sessions", r, opened)
}

// CloseSession implements Service.
func (a API) CloseSession(ctx context.Context, id string) error {
	return a.call(ctx, "DELETE", "/v1/sessions/"+url.PathEscape(id), nil, nil)
}

// filePath is where a file of a session is in the API.
func filePath(session, path string) string {
	parts := strings.Split(below(path), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
		if parts[i] == "." || parts[i] == ".." { // for the API to refuse: no client cleans it
			parts[i] = strings.ReplaceAll(parts[i], ".", "%2E")
		}
	}
	return "/v1/sessions/" + url.PathEscape(session) + "/files/" + strings.Join(parts, "/")
}

// ListFiles implements Service.
func (a API) ListFiles(ctx context.Context, session, folder string) (list FileList, err error) {
	query := url.Values{"recursive": {"true"}}
	if folder != "" {
		query.Set("path", folder)
	}
	err = a.call(ctx, "GET", "/v1/sessions/"+url.PathEscape(session)+"/files?"+query.Encode(), nil, &list)
	return list, err
}

// ReadFile implements Service.
func (a API) ReadFile(ctx context.Context, session, path string) (*File, error) {
	resp, err := a.send(ctx, "GET", filePath(session, path), "", nil, "")
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return &File{mediaType, resp.ContentLength, resp.Body}, nil
}

// WriteFile implements Service.
func (a API) WriteFile(ctx context.Context, session, path, content string) (*FileEntry, error) {
	resp, err := a.send(ctx, "PUT", filePath(session, path), "application/octet-stream", strings.NewReader(content), "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	written := new(FileEntry)
	return written, decode(resp.Body, written)
}
