package agent

import (
	"context"
	"errors"

	"notebox/agent/tool"
)

// Config is what an Agent is made of. Code.Provider and Executor must be set.
type Config struct {
	Code     Mind
	File     Mind    // its Provider nil: Code's
	Folder   *Folder // that the file agent reads; nil: there is no file agent
	Executor Executor
	// About is what the code agent is told of the service. Session is set where
	// Sessions is.
	About    tool.About
	Sessions bool // one for each conversation; Executor must be Sessions
	Limits   Limits
}

// Mind is a model in a role.
type Mind struct {
	Provider Provider
	Prompt   string // in addition to the role's own; may be empty
}

// Agent answers questions. It may be used concurrently.
type Agent struct {
	code, file Mind
	folder     *Folder
	executor   Executor
	sessions   Sessions // nil: a sandbox for each run
	about      tool.About
	limits     Limits
}

// New returns an Agent.
func New(c Config) (*Agent, error) {
	if c.Code.Provider == nil || c.Executor == nil {
		return nil, errors.New("agent: a provider and an executor must be set")
	}
	a := &Agent{code: c.Code, file: c.File, folder: c.Folder, executor: c.Executor, about: c.About, limits: c.Limits.orDefault()}
	if a.file.Provider == nil {
		a.file.Provider = c.Code.Provider
	}
	a.about.Session = c.Sessions
	if c.Sessions {
		a.about.Languages = a.about.Languages[:min(len(a.about.Languages), 1)] // a session has one
		var ok bool
		if a.sessions, ok = c.Executor.(Sessions); !ok {
			return nil, errors.New("agent: the executor has no sessions")
		}
	}
	return a, nil
}

// Limits are those that hold, with their defaults.
func (a *Agent) Limits() Limits { return a.limits }

// Question is what a user asks.
type Question struct {
	Text  string
	Files []File // that the user gives, for /mnt/data; they stay for the conversation
}

// Answer is what a user gets.
type Answer struct {
	Text    string // Markdown; see Links for what may stand in it
	Steps   []Step
	Images  []tool.Image // of all runs
	Files   []tool.File  // of all runs; of those with one path the last
	Stopped Stopped
	Usage   Usage // of all turns, estimated where a provider did not say
}

// Ask answers a question that no other belongs to. An error means that there is no
// answer: a provider or the executor failed, or ctx ended. sink may be nil.
func (a *Agent) Ask(ctx context.Context, q Question, sink Sink) (*Answer, error) {
	c := a.Converse()
	defer c.Close()
	return c.Ask(ctx, q, sink)
}
