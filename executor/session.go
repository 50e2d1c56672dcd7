package executor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"notebox/access"
	"notebox/environments"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// Bash is the language of commands, which run beside the kernel of a session.
const Bash = "bash"

// bashNames are what callers call it.
var bashNames = []string{Bash, "sh", "shell"}

// BashNames returns what callers call it.
func BashNames() []string { return slices.Clone(bashNames) }

// IsBash reports whether a language is bash, by one of its names.
func IsBash(language string) bool { return slices.Contains(bashNames, strings.ToLower(language)) }

// asksBash reports whether a request is one for bash: by its language, or else by the type
// of its body or the name of its program.
func (x *Executor) asksBash(o *Order, entrypoint string) bool {
	if o.Language != nil {
		return IsBash(*o.Language)
	}
	if env := x.byMediaType(o.MediaType); env != nil {
		return IsBash(env.Language)
	}
	env := x.byExtension(entrypoint)
	return env != nil && IsBash(env.Language)
}

// maxCommand is what Linux takes as one argument, in bytes, its last NUL left out
// (MAX_ARG_STRLEN).
const maxCommand = 128<<10 - 1

// inSession is what a plan has of the session that it runs in. whyLost may be called
// on nil.
type inSession struct {
	id      string
	owner   string
	session runner.Session // nil if there is none
	lost    error          // why; to be told unless an earlier reply stands for the request
	command string         // for bash beside the kernel; "" for the kernel
}

func (in *inSession) whyLost() error {
	if in == nil {
		return nil
	}
	return in.lost
}

// planSession sets a plan's session and environment.
func (x *Executor) planSession(p *plan, o *Order, cells []string, book []byte, caller *access.Caller) error {
	if x.sessions == nil {
		return &problem.Error{Status: problem.StatusForbidden, Field: "session", Text: "this service's operator allows no sessions"}
	}
	in := &inSession{id: *o.Session, owner: caller.Owner()}
	if err := in.find(x.sessions); err != nil {
		return err
	}
	if len(o.Env) > 0 {
		return problem.Unfit("env", "is the session's: give it when the session is opened")
	}
	if len(o.Dependencies) > 0 {
		return problem.Unfit("dependencies", "are the session's: give them when the session is opened")
	}
	if err := in.network(o, caller); err != nil {
		return err
	}
	env, err := x.sessionEnvironment(in)
	if err != nil {
		return err
	}
	p.session, p.environment = in, env
	if !IsBash(env.Language) && x.asksBash(o, p.entrypoint) {
		if p.entrypoint != "" {
			cells = []string{Bash + " " + shellWord(runner.DataFolder+"/"+p.entrypoint)}
		}
		in.command, err = x.commandOf(cells, book, o.MediaType)
		return err
	}
	return x.agrees(p, o)
}

// find looks the session up; that it is over is not an error of this.
func (in *inSession) find(all runner.Sessions) error {
	if !IsSessionID(in.id) {
		return noSuchSession()
	}
	session, err := all.Find(in.owner, in.id)
	switch {
	case errors.As(err, new(*runner.ElsewhereError)): // which looks for an earlier reply, too
		return err
	case errors.Is(err, runner.ErrNoSession):
		in.lost = noSuchSession()
	case err != nil:
		in.lost = err
	case session.Info().Waiting >= runner.MaxSessionWaiting:
		in.lost = &problem.Error{
			Status: problem.StatusTooMany, Field: "session", RetryAfter: time.Second,
			Text: fmt.Sprintf("%d runs wait in it already", runner.MaxSessionWaiting),
		}
	default:
		in.session = session
	}
	return nil
}

func noSuchSession() *problem.Error {
	return &problem.Error{Status: problem.StatusNotFound, Field: "session", Text: "there is no such session: it ended long ago, or never was"}
}

// network refuses what the session is not, and a session with a network to a key that
// may have none any more.
func (in *inSession) network(o *Order, caller *access.Caller) error {
	has := in.session != nil && in.session.Info().Network
	if o.Network != nil && (*o.Network || has) {
		return problem.Unfit("network", "is the session's: give it when the session is opened")
	}
	if has {
		return caller.MayNetwork()
	}
	return nil
}

// sessionEnvironment is that of the session.
func (x *Executor) sessionEnvironment(in *inSession) (*environments.Environment, error) {
	if in.session == nil {
		return &x.environments[0], nil // no run comes of it
	}
	name := in.session.Info().Environment
	env := x.ByName(name)
	if env == nil {
		return nil, &problem.Error{
			Status: problem.StatusUnavailable, Field: "session", RetryAfter: storeRetry,
			Text: "its environment is not configured any more", Cause: fmt.Errorf("a session of the environment %q", name),
		}
	}
	return env, nil
}

// agrees holds all that a request says of languages against its session's.
func (x *Executor) agrees(p *plan, o *Order) error {
	env := p.environment
	one := func(field, language string, other *environments.Environment) error {
		switch {
		case language == "" || IsBash(language) && IsBash(env.Language):
			return nil
		case other == nil:
			return problem.Unfit(field, "%s is not known; in this session there %s", problem.Quote(language), runs(env, "is %s", "are: %s, %s"))
		case p.session.session != nil && other.Name != env.Name:
			return problem.Unfit(field, "is %s, and this session runs %s; open another session for it", problem.Quote(language), runs(env, "%s", "%s, and %s beside it"))
		}
		return nil
	}
	if err := one("notebook.metadata.kernelspec.language", p.language, x.ByLanguage(p.language)); err != nil {
		return err
	}
	if other := x.byMediaType(o.MediaType); other != nil {
		if err := one("Content-Type", o.MediaType, other); err != nil {
			return err
		}
	}
	if o.Language != nil {
		language := *o.Language
		return one("language", language, x.ByLanguage(language))
	}
	if other := x.byExtension(p.entrypoint); other != nil {
		return one("entrypoint", other.Language, other)
	}
	return nil
}

// runs says what a session of an environment runs: its language alone, if that is bash,
// or bash as well.
func runs(env *environments.Environment, alone, beside string) string {
	if IsBash(env.Language) {
		return fmt.Sprintf(alone, env.Language)
	}
	return fmt.Sprintf(beside, env.Language, Bash)
}

// commandOf is the one command of a request for bash.
func (x *Executor) commandOf(cells []string, book []byte, mediaType string) (string, error) {
	typed := x.byMediaType(mediaType)
	switch {
	case book != nil:
		return "", problem.Unfit("notebook", "cannot be run by %s: give one command as code", Bash)
	case len(cells) != 1:
		return "", problem.Unfit("cells", "are %d, and %s takes one command: give it as code", len(cells), Bash)
	case mediaType != "" && mediaType != "text/plain" && (typed == nil || !IsBash(typed.Language)):
		return "", problem.Unfit("language", "does not agree with the Content-Type")
	case cells[0] == "":
		return "", problem.Malformed("cells", "its command is empty")
	case strings.ContainsRune(cells[0], 0):
		return "", problem.Unfit("code", "has a NUL character in it, which no command can hold")
	case len(cells[0]) > maxCommand:
		return "", problem.TooLarge("code", "a command may have %d bytes: write it to a file, and run that", maxCommand)
	}
	return cells[0], nil
}

// ByName finds an environment; nil if there is none.
func (x *Executor) ByName(name string) *environments.Environment {
	return x.find(func(e *environments.Environment) bool { return e.Name == name })
}

func (x *Executor) byMediaType(mediaType string) *environments.Environment {
	return x.find(func(e *environments.Environment) bool { return slices.Contains(e.MediaTypes, mediaType) })
}

// runnerOf is what a plan is run by.
func (x *Executor) runnerOf(p *plan) runner.Runner {
	if p.session != nil {
		return p.session.session
	}
	return x.runner
}

// SessionRef is what a reply says of the session that its run was in.
type SessionRef struct {
	ID              string    `json:"id"`
	ExpiresAt       time.Time `json:"expires_at"`
	KernelRestarted bool      `json:"kernel_restarted"`
}

func (in *inSession) ref(out *runner.Outcome) *SessionRef {
	if in == nil {
		return nil
	}
	return &SessionRef{ID: in.id, ExpiresAt: Stamp(in.session.Info().Expires), KernelRestarted: out.KernelRestarted}
}

// restartedText says to a model what a new kernel means.
const restartedText = "The kernel of this session was restarted: variables and imports are lost, files in /mnt/data are kept."

// unshown is the error of a run that has none among its outputs: of a command that ended
// with another exit code than 0, or of code whose exception was not shown, as by a handler of
// its own. nil if there was none.
func unshown(out *runner.Outcome) *Exception {
	switch {
	case out.ExitCode != nil && *out.ExitCode != 0:
		return &Exception{Name: "CommandFailed", Message: fmt.Sprintf("the command ended with exit code %d", *out.ExitCode)}
	case out.Status == runner.StatusError:
		return &Exception{Name: "Exception", Message: "the code raised an exception that was not shown"}
	}
	return nil
}

// hintFor is hint, and what there is to say of a session.
func (x *Executor) hintFor(p *plan, out *runner.Outcome, r *notebook.Result) string {
	text := hint(p, out, r)
	if p.session == nil {
		return text
	}
	if out.Status == runner.StatusCancelled {
		var gone *runner.GoneError
		if _, err := x.sessions.Find(p.session.owner, p.session.id); errors.As(err, &gone) {
			text = "The run ended with its session: " + GoneText(gone) + "; open another session, and send files and code again."
		}
	}
	switch {
	case out.KernelRestarted:
		text = strings.TrimSpace(text + " " + restartedText)
	case out.Status == runner.StatusTimeout || out.Status == runner.StatusOutputLimit:
		text += " The variables and files of this session are kept."
	}
	return text
}

var sessionIDs = regexp.MustCompile(`^ses_[0-9A-HJKMNP-TV-Z]{26}$`)

// IsSessionID reports whether text is the id of a session as the executor makes them.
func IsSessionID(text string) bool { return sessionIDs.MatchString(text) }

// Stamp is a time as answers have it.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
