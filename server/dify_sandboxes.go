package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/runner"
	"notebox/server/dify"
)

// noteConversation is the note of a session that is a conversation's: the hash of its id.
const noteConversation = "dify-conversation"

// difyLanguages are what a sandbox of package dify runs, by the names that it has there.
func difyLanguages() []string { return []string{"py", "bash"} }

// difySandboxes are a caller's sessions, as package dify has them.
type difySandboxes struct {
	server *Server
	c      echo.Context
	caller *access.Caller
}

// Open implements dify.Sandboxes.
func (d *difySandboxes) Open(ctx context.Context, conversation string) (dify.Sandbox, error) {
	if conversation == "" {
		return d.open(ctx, nil)
	}
	sum := sha256.Sum256([]byte(conversation))
	hash := hex.EncodeToString(sum[:])
	release, err := d.server.dify.conversations.take(ctx, d.caller.Owner()+" "+hash)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, known := range d.server.sessions.List(d.caller.Owner()) {
		if known.Note[noteConversation] != hash {
			continue
		}
		if session, err := d.server.sessions.Find(d.caller.Owner(), known.ID); err == nil {
			return &difySandbox{d, session}, nil
		}
	}
	return d.open(ctx, map[string]string{noteConversation: hash})
}

// Find implements dify.Sandboxes.
func (d *difySandboxes) Find(_ context.Context, id string) (dify.Sandbox, error) {
	session, err := d.find(id)
	if err != nil {
		return nil, noSandbox(err)
	}
	return &difySandbox{d, session}, nil
}

func (d *difySandboxes) find(id string) (runner.Session, error) {
	if !sessionIDs.MatchString(id) {
		return nil, runner.ErrNoSession
	}
	d.c.Set(sessionKey, id)
	return d.server.sessions.Find(d.caller.Owner(), id)
}

// Stop implements dify.Sandboxes.
func (d *difySandboxes) Stop(ctx context.Context, id string) (found bool, err error) {
	session, err := d.find(id)
	if err == nil {
		err = session.Close(ctx)
	}
	var gone *runner.GoneError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, runner.ErrNoSession), errors.As(err, &gone):
		return false, nil
	}
	d.server.log.ErrorContext(ctx, "a session could not be ended", "session", id, "error", err)
	return true, err
}

// noSandbox gives the end of a session the face that it has for a model; other errors
// are returned as they are.
func noSandbox(err error) error {
	const again = "; create_sandbox makes a new one"
	var gone *runner.GoneError
	switch {
	case errors.Is(err, runner.ErrNoSession):
		return &problem{status: http.StatusNotFound, text: "there is no sandbox with this sandbox_id" + again}
	case errors.As(err, &gone):
		return &problem{status: http.StatusNotFound, text: goneText(gone) + "; its variables and files are lost" + again, cause: gone.Err}
	}
	return err
}

// difySandbox is a session, as package dify has it.
type difySandbox struct {
	of      *difySandboxes
	session runner.Session
}

// Info implements dify.Sandbox.
func (b *difySandbox) Info() dify.Info {
	known := b.session.Info()
	return dify.Info{
		ID: known.ID, Status: dify.StatusRunning, CreatedAt: known.Created.UTC(), ExpiresAt: known.Expires.UTC(),
		IdleSeconds: known.Idle.Seconds(), WorkingDirectory: dify.DataDir, Languages: difyLanguages(), Network: known.Network,
	}
}

// open makes a new session, as POST /v1/sessions does of an empty request.
func (d *difySandboxes) open(ctx context.Context, note map[string]string) (dify.Sandbox, error) {
	s := d.server
	open := len(s.sessions.List(d.caller.Owner()))
	if err := errors.Join(d.caller.MayOpenSession(open), d.caller.MayUseCPU()); err != nil {
		return nil, err
	}
	spec, err := s.sessionSpec(d.c, &sessionRequest{})
	if err != nil {
		return nil, err
	}
	spec.Note = note
	session, err := s.open(ctx, spec)
	if err != nil {
		return nil, err
	}
	d.c.Set(sessionKey, spec.ID)
	s.log.LogAttrs(ctx, slog.LevelInfo, "session opened", append(who(d.c), slog.String("environment", spec.Environment.Name),
		slog.Duration("ttl", spec.TTL), slog.Duration("idle", spec.Idle))...)
	return &difySandbox{d, session}, nil
}
