package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"notebox/access"
	"notebox/agent/tool"
	"notebox/client"
	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
)

// Local is the Service of the executor of this process, for one caller.
type Local struct {
	Executor *executor.Executor
	Caller   *access.Caller
	Base     string // what links start with
	MaxCode  int64  // bytes of a program
	// Told gives an error its public face, and writes it to the log.
	Told func(ctx context.Context, err error, who ...slog.Attr) *problem.Error
	Log  *slog.Logger

	Languages func() (tool.About, error) // for the caller
	// At is the Service of a peer, for the same caller: it has a session that this one has
	// not. nil: there are no peers.
	At func(peer string) Service
}

// elsewhere is the Service that has a session, if err says that another one has it; else nil.
func (l *Local) elsewhere(err error) Service {
	if there := (*runner.ElsewhereError)(nil); l.At != nil && errors.As(err, &there) {
		return l.At(there.Service)
	}
	return nil
}

// tell is deferred: it writes a call to the log, and makes its error one that a model may
// read. A panic goes on: nobody knows yet what became of that call.
func (l *Local) tell(ctx context.Context, err *error, of *[]slog.Attr) {
	if v := recover(); v != nil {
		panic(v)
	}
	who := append([]slog.Attr{slog.String("owner", l.Caller.Owner()), slog.String("caller", l.Caller.Name())}, *of...)
	if *err == nil || ctx.Err() != nil || errors.As(*err, new(*Refusal)) { // a peer's, who has told its log
		l.Log.LogAttrs(ctx, slog.LevelInfo, "a call of MCP", who...)
		return
	}
	p := l.Told(ctx, *err, who...)
	*err = &Refusal{Status: int(p.Status), Detail: p.Detail()}
}

// inSession names a session for the log, which gets nothing else that callers write.
func inSession(id string) *[]slog.Attr {
	if !executor.IsSessionID(id) {
		return new([]slog.Attr)
	}
	return &[]slog.Attr{slog.String("session", id)}
}

// About implements Service.
func (l *Local) About(context.Context) (About, error) {
	about, err := l.Languages()
	return About{about, l.Executor.SessionsOffered() == nil}, err
}

// Run implements Service.
func (l *Local) Run(ctx context.Context, e Execution, said func(string)) (_ []byte, err error) {
	who := inSession(e.Session)
	defer l.tell(ctx, &err, who)
	if err := l.Caller.MayBeginRun(); err != nil {
		return nil, err
	}
	if int64(len(e.Code)) > l.MaxCode {
		return nil, problem.TooLarge("code", "is larger than %d bytes", l.MaxCode)
	}
	o := &executor.Order{Code: &e.Code, Language: &e.Language, Dependencies: e.Dependencies, Base: l.Base}
	if e.Session != "" {
		o.Session = &e.Session
	}
	if e.Timeout != 0 {
		o.Timeout = &e.Timeout
	}
	run, err := l.Executor.Begin(ctx, l.Caller, o)
	if peer := l.elsewhere(err); peer != nil {
		return peer.Run(ctx, e, said)
	}
	if err != nil {
		return nil, err
	}
	defer run.Leave()
	*who = append(*who, slog.String("run", run.ID))
	run.Start(sayer{said: said})
	reply, err := run.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return reply.Bytes(), nil
}

// sayer hears of the text that a run puts out.
type sayer struct {
	executor.Silence
	said func(string)
}

// Install implements executor.Listener.
func (s sayer) Install(text string) { s.said(text) }

// Output implements executor.Listener.
func (s sayer) Output(entry any) {
	if text, ok := entry.(executor.StreamOutput); ok {
		s.said(text.Text)
	}
}

// OpenSession implements Service.
func (l *Local) OpenSession(ctx context.Context, r SessionRequest) (_ *client.Session, err error) {
	defer l.tell(ctx, &err, new([]slog.Attr))
	o := &executor.SessionOrder{Dependencies: r.Dependencies}
	if r.Language != "" {
		o.Language = &r.Language
	}
	if r.TTL != 0 {
		o.TTL = &r.TTL
	}
	session, err := l.Executor.OpenSession(ctx, l.Caller, o)
	if err != nil {
		return nil, err
	}
	info := session.Info()
	return &client.Session{ID: info.ID, Language: info.Language, ExpiresAt: executor.Stamp(info.Expires), IdleSeconds: info.Idle.Seconds()}, nil
}

// CloseSession implements Service.
func (l *Local) CloseSession(ctx context.Context, id string) (err error) {
	defer l.tell(ctx, &err, inSession(id))
	session, err := l.Executor.FindSession(l.Caller, id)
	if peer := l.elsewhere(err); peer != nil {
		return peer.CloseSession(ctx, id)
	}
	if err != nil {
		return err
	}
	return session.Close(ctx)
}

// files returns a session, within a place for its files, which leave gives back.
func (l *Local) files(id string) (session *executor.Session, leave func(), err error) {
	if session, err = l.Executor.FindSession(l.Caller, id); err == nil {
		leave, err = session.EnterFiles()
	}
	return session, leave, err
}

// ListFiles implements Service.
func (l *Local) ListFiles(ctx context.Context, id, folder string) (list client.FileList, err error) {
	defer l.tell(ctx, &err, inSession(id))
	session, leave, err := l.files(id)
	if peer := l.elsewhere(err); peer != nil {
		return peer.ListFiles(ctx, id, folder)
	}
	if err != nil {
		return list, err
	}
	defer leave()
	if folder, err = executor.GivenPath("path", folder); err != nil {
		return list, err
	}
	files, more, err := session.ListFiles(ctx, folder, true)
	list = client.FileList{Files: []client.FileEntry{}, More: more}
	for _, f := range files {
		list.Files = append(list.Files, entryOf(f))
	}
	return list, err
}

func entryOf(f executor.FileEntry) client.FileEntry {
	return client.FileEntry{Path: f.Path, Kind: string(f.Kind), Bytes: f.Bytes, MediaType: f.MediaType, ModifiedAt: f.ModifiedAt}
}

// ReadFile implements Service.
func (l *Local) ReadFile(ctx context.Context, id, path string) (_ *client.Content, err error) {
	defer l.tell(ctx, &err, inSession(id))
	session, leave, err := l.files(id)
	if peer := l.elsewhere(err); peer != nil {
		return peer.ReadFile(ctx, id, path)
	}
	if err != nil {
		return nil, err
	}
	name := below(path)
	if !executor.IsPath(name) {
		leave()
		return nil, problem.NotFound()
	}
	f, err := session.ReadFile(ctx, name)
	if err != nil {
		leave()
		return nil, err
	}
	return &client.Content{ReadCloser: placed{f, leave}, MediaType: f.MediaType, Bytes: f.Size}, nil
}

// placed is a content that has a place until it is closed.
type placed struct {
	io.ReadCloser
	leave func()
}

func (p placed) Close() error {
	defer p.leave()
	return p.ReadCloser.Close()
}

// below is a path as models write it, relative to /mnt/data.
func below(path string) string {
	return strings.Trim(strings.TrimPrefix(path, runner.DataFolder+"/"), "/")
}

// WriteFile implements Service.
func (l *Local) WriteFile(ctx context.Context, id, path, content string) (_ *client.FileEntry, err error) {
	defer l.tell(ctx, &err, inSession(id))
	session, leave, err := l.files(id)
	if peer := l.elsewhere(err); peer != nil {
		return peer.WriteFile(ctx, id, path, content)
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	name := below(path)
	if _, why := executor.CleanName(name); why != "" {
		return nil, problem.Malformed("path", "%s", why)
	}
	if most := session.MaxFile(); int64(len(content)) > most {
		return nil, problem.TooLarge("content", "is larger than %d bytes", most)
	}
	entry, _, err := session.WriteFile(ctx, name, strings.NewReader(content))
	return new(entryOf(entry)), err
}
