package dify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/web"
)

// noteConversation is the note of a session that is a conversation's: the hash of its id.
const noteConversation = "dify-conversation"

// py is what answers call Python.
const py = "py"

// pythons are names of Python that need be no alias of its environment.
var pythons = []string{py, "python3"}

// sessions are the sandboxes of the caller of one request.
type sessions struct {
	server *handler
	c      echo.Context
	caller *access.Caller
}

// open returns the live sandbox of a conversation, which it makes if there is
// none; for "" a new one each time. Calls at once get the same. language is the
// sandbox's; "" is the default one, and a conversation has one for each.
func (d *sessions) open(ctx context.Context, conversation, language string) (*sandbox, error) {
	if slices.ContainsFunc(pythons, func(name string) bool { return strings.EqualFold(name, language) }) {
		language = web.ToolLanguage
	}
	if conversation == "" {
		return d.openNew(ctx, language, nil)
	}
	if env := d.server.Executor.ByLanguage(language); env != nil && env.Name != d.server.Environments[0].Name {
		conversation += "\n" + env.Name
	}
	sum := sha256.Sum256([]byte(conversation))
	hash := hex.EncodeToString(sum[:])
	release, err := d.server.conversations.take(ctx, d.caller.Owner()+" "+hash)
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
		if session, err := d.session(known.ID); err == nil {
			return &sandbox{d, session}, nil
		}
	}
	return d.openNew(ctx, language, map[string]string{noteConversation: hash})
}

// find returns a sandbox. Its error says that there is none if it is over, or another
// caller's.
func (d *sessions) find(id string) (*sandbox, error) {
	session, err := d.session(id)
	if err != nil {
		return nil, noSandbox(err)
	}
	return &sandbox{d, session}, nil
}

func (d *sessions) session(id string) (*executor.Session, error) {
	if executor.IsSessionID(id) {
		web.NoteSession(d.c, id)
	}
	return d.server.Executor.FindSession(d.caller, id)
}

// stop ends a sandbox. It reports whether there was one to end.
func (d *sessions) stop(ctx context.Context, id string) (found bool, err error) {
	session, err := d.session(id)
	if err == nil {
		err = session.Close(ctx)
	}
	var gone *runner.GoneError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, runner.ErrNoSession), errors.As(err, &gone):
		return false, nil
	case errors.As(err, new(*runner.ElsewhereError)):
		return false, err
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

// sandbox is a live kernel with its files. Paths are relative to /mnt/data, and clean.
type sandbox struct {
	of      *sessions
	session *executor.Session
}

// info is what is known of it.
func (b *sandbox) info() Info {
	known := b.session.Info()
	return Info{
		ID: known.ID, Status: StatusRunning, CreatedAt: known.Created.UTC(), ExpiresAt: known.Expires.UTC(),
		IdleSeconds: known.Idle.Seconds(), WorkingDirectory: runner.DataFolder, Languages: b.languages(), Network: known.Network,
	}
}

// languages are what the sandbox runs, by the names that they have here.
func (b *sandbox) languages() []string {
	info := b.session.Info()
	name := cmp.Or(info.Language, info.Environment)
	switch {
	case executor.IsBash(name):
		return []string{executor.Bash}
	case name == web.ToolLanguage:
		name = py
	}
	return []string{name, executor.Bash}
}

// runs reports whether run takes a language by that name.
func (b *sandbox) runs(language string) bool {
	if executor.IsBash(language) {
		return true
	}
	own := b.of.server.Executor.ByName(b.session.Info().Environment)
	if own != nil && own.Language == web.ToolLanguage && slices.ContainsFunc(pythons, func(name string) bool { return strings.EqualFold(name, language) }) {
		return true
	}
	other := b.of.server.Executor.ByLanguage(language)
	return own != nil && other != nil && own.Name == other.Name
}

// openNew makes a new session.
func (d *sessions) openNew(ctx context.Context, language string, note map[string]string) (*sandbox, error) {
	o := &executor.SessionOrder{Note: note}
	if language != "" {
		o.Language = &language
	}
	session, err := d.server.Executor.OpenSession(ctx, d.caller, o)
	if err != nil {
		return nil, err
	}
	web.NoteSession(d.c, session.Info().ID)
	return &sandbox{d, session}, nil
}

// Info is what is known of a sandbox.
type Info struct {
	ID               string    `json:"sandbox_id"`
	Status           string    `json:"status"` // StatusRunning: of others, nothing is known
	CreatedAt        time.Time `json:"created_at"`
	ExpiresAt        time.Time `json:"expires_at"`           // at the latest
	IdleSeconds      float64   `json:"idle_timeout_seconds"` // without a call until it ends
	WorkingDirectory string    `json:"working_directory"`
	Languages        []string  `json:"languages"`
	Network          bool      `json:"network"`
}

// StatusRunning is the status of every sandbox that can be asked.
const StatusRunning = "running"
