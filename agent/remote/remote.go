package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"notebox/agent"
	"notebox/agent/tool"
	"notebox/client"
)

// Notebox is an agent.Executor, and an agent.Sessions if the notebox has sessions.
type Notebox struct{ *client.Client }

var _ agent.Sessions = Notebox{}

// New is the Notebox of a new client.
func New(o client.Options) Notebox { return Notebox{client.New(o)} }

// Execute implements agent.Executor.
func (n Notebox) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	answer, err := n.Client.Execute(ctx, client.Run{
		Code: r.Code, Language: r.Language, Timeout: r.Timeout, Files: files(r.Files),
		Session: r.Session, Dependencies: r.Dependencies, Listener: client.Telling(r.Tell),
	})
	if err != nil {
		return nil, ofRun(err, r)
	}
	result, err := tool.ReadResult(answer.Raw)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	return &result, nil
}

// ofRun is the error of a run as agent.Executor has it.
func ofRun(err error, r agent.Run) error {
	var e *client.Error
	switch {
	case !errors.As(err, &e):
		return err
	case r.Session != "" && e.NotThere():
		return fmt.Errorf("%w: %w", agent.ErrNoSession, err)
	case e.OfDependencies():
		return tool.PackagesError("%s", e.Detail)
	case e.Field == "code" && e.Status < http.StatusInternalServerError:
		return &tool.CallError{Reason: "its program: " + e.Detail}
	}
	return err
}

// OpenSession implements agent.Sessions.
func (n Notebox) OpenSession(ctx context.Context, language string, given []agent.File) (string, error) {
	session, err := n.Client.OpenSession(ctx, client.SessionOptions{Language: language, Files: files(given)})
	if err != nil {
		return "", err
	}
	return session.ID, nil
}

// CloseSession implements agent.Sessions.
func (n Notebox) CloseSession(ctx context.Context, id string) error {
	err := n.Client.CloseSession(ctx, id)
	if e := (*client.Error)(nil); errors.As(err, &e) && e.NotThere() {
		return nil
	}
	return err
}

func files(given []agent.File) []client.File {
	var out []client.File
	for _, f := range given {
		out = append(out, client.File{Name: f.Name, Open: f.Open})
	}
	return out
}
