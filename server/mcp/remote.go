package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"notebox/agent/remote"
	"notebox/client"
)

// API is the Service of a notebox elsewhere, as one caller sees it.
type API struct{ Notebox remote.Notebox }

// refusal makes an error of the client one that a model may read.
func refusal(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) {
		return &Refusal{refused.Status, refused.Detail}
	}
	var unreached *url.Error
	if errors.As(err, &unreached) {
		if u, bad := url.Parse(unreached.URL); bad == nil {
			return fmt.Errorf("notebox is not reached at %s://%s: %w", u.Scheme, u.Host, unreached)
		}
	}
	return err
}

// About implements Service.
func (a API) About(ctx context.Context) (about About, err error) {
	about.About, about.Sessions, err = a.Notebox.About(ctx, "")
	return about, refusal(err)
}

// Run implements Service.
func (a API) Run(ctx context.Context, e Execution, said func(string)) ([]byte, error) {
	result, err := a.Notebox.Client.Execute(ctx, client.Run{
		Code: e.Code, Language: e.Language, Session: e.Session, Timeout: remote.Seconds(e.Timeout), Dependencies: e.Dependencies,
		Images: true, Listener: client.Telling(said),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return result.Raw, nil
}

// OpenSession implements Service.
func (a API) OpenSession(ctx context.Context, r SessionRequest) (*client.Session, error) {
	session, err := a.Notebox.Client.OpenSession(ctx, client.SessionOptions{Language: r.Language, TTL: remote.Seconds(r.TTL), Dependencies: r.Dependencies})
	return session, refusal(err)
}

// CloseSession implements Service.
func (a API) CloseSession(ctx context.Context, id string) error {
	return refusal(a.Notebox.Client.CloseSession(ctx, id))
}

// ListFiles implements Service.
func (a API) ListFiles(ctx context.Context, session, folder string) (client.FileList, error) {
	list, err := a.Notebox.ListFiles(ctx, session, folder)
	return list, refusal(err)
}

// ReadFile implements Service.
func (a API) ReadFile(ctx context.Context, session, path string) (*client.Content, error) {
	content, err := a.Notebox.ReadFile(ctx, session, below(path))
	return content, refusal(err)
}

// WriteFile implements Service.
func (a API) WriteFile(ctx context.Context, session, path, content string) (*client.FileEntry, error) {
	written, err := a.Notebox.WriteFile(ctx, session, below(path), strings.NewReader(content))
	return written, refusal(err)
}
