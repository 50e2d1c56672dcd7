package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/dify"
	"notebox/server/web"
)

// noteConversation is the note of a session that is a conversation's: the hash of its id.
const noteConversation = "dify-conversation"

// difyPython is what package dify calls Python in its answers.
const difyPython = "py"

// difyPythons are names of it that need be no alias of its environment.
var difyPythons = []string{"py", "python3"}

// difySandboxes are a caller's sessions, as package dify has them.
type difySandboxes struct {
	server *Server
	c      echo.Context
	caller *access.Caller
}

// Open implements dify.Sandboxes.
func (d *difySandboxes) Open(ctx context.Context, conversation, language string) (dify.Sandbox, error) {
	if slices.ContainsFunc(difyPythons, func(name string) bool { return strings.EqualFold(name, language) }) {
		language = toolLanguage
	}
	if conversation == "" {
		return d.open(ctx, language, nil)
	}
	if env := d.server.Executor.ByLanguage(language); env != nil && env.Name != d.server.Environments[0].Name {
		conversation += "\n" + env.Name
	}
	sum := sha256.Sum256([]byte(conversation))
	hash := hex.EncodeToString(sum[:])
	release, err := d.server.dify.conversations.take(ctx, d.caller.Owner()+" "+hash)
	if err != nil {
		return nil, err
	}
	defer release()
	all, err := d.server.Executor.SessionsOf(d.caller)
	if err != nil {
		return nil, err
	}
	for _, known := range all {
		if known.Note[noteConversation] != hash {
			continue
		}
		if session, err := d.find(known.ID); err == nil {
			return &difySandbox{d, session}, nil
		}
	}
	return d.open(ctx, language, map[string]string{noteConversation: hash})
}

// Find implements dify.Sandboxes.
func (d *difySandboxes) Find(_ context.Context, id string) (dify.Sandbox, error) {
	session, err := d.find(id)
	if err != nil {
		return nil, noSandbox(err)
	}
	return &difySandbox{d, session}, nil
}

func (d *difySandboxes) find(id string) (*executor.Session, error) {
	if executor.IsSessionID(id) {
		web.NoteSession(d.c, id)
	}
	return d.server.Executor.FindSession(d.caller, id)
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
	d.server.Log.ErrorContext(ctx, "a session could not be ended", "session", id, "error", err)
	return true, err
}

// noSandbox gives the end of a session the face that it has for a model; other errors
// are returned as they are.
func noSandbox(err error) error {
	const again = "; create_sandbox makes a new one"
	var gone *runner.GoneError
	switch {
	case errors.Is(err, runner.ErrNoSession):
		return &problem.Error{Status: http.StatusNotFound, Text: "there is no sandbox with this sandbox_id" + again}
	case errors.As(err, &gone):
		return &problem.Error{Status: http.StatusNotFound, Text: executor.GoneText(gone) + "; its variables and files are lost" + again, Cause: gone.Err}
	}
	return err
}

// difySandbox is a session, as package dify has it.
type difySandbox struct {
	of      *difySandboxes
	session *executor.Session
}

// Info implements dify.Sandbox.
func (b *difySandbox) Info() dify.Info {
	known := b.session.Info()
	return dify.Info{
		ID: known.ID, Status: dify.StatusRunning, CreatedAt: known.Created.UTC(), ExpiresAt: known.Expires.UTC(),
		IdleSeconds: known.Idle.Seconds(), WorkingDirectory: dify.DataDir, Languages: b.languages(), Network: known.Network,
	}
}

// languages are what the sandbox runs, by the names that they have here.
func (b *difySandbox) languages() []string {
	info := b.session.Info()
	name := cmp.Or(info.Language, info.Environment)
	switch {
	case executor.IsBash(name):
		return []string{dify.Bash}
	case name == toolLanguage:
		name = difyPython
	}
	return []string{name, dify.Bash}
}

// Runs implements dify.Sandbox.
func (b *difySandbox) Runs(language string) bool {
	if executor.IsBash(language) {
		return true
	}
	own := b.of.server.Executor.ByName(b.session.Info().Environment)
	if own != nil && own.Language == toolLanguage && slices.ContainsFunc(difyPythons, func(name string) bool { return strings.EqualFold(name, language) }) {
		return true
	}
	other := b.of.server.Executor.ByLanguage(language)
	return own != nil && other != nil && own.Name == other.Name
}

// open makes a new session, as POST /v1/sessions does of a request with a language alone.
func (d *difySandboxes) open(ctx context.Context, language string, note map[string]string) (dify.Sandbox, error) {
	o := &executor.SessionOrder{Note: note}
	if language != "" {
		o.Language = &language
	}
	session, err := d.server.Executor.OpenSession(ctx, d.caller, o)
	if err != nil {
		return nil, err
	}
	web.NoteSession(d.c, session.Info().ID)
	return &difySandbox{d, session}, nil
}
