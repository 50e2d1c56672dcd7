package dify

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"notebox/executor"
	"notebox/runner"
)

// RunTime is when a run is interrupted, counted from the request's arrival: Dify reads for
// 60 s (its API_TOOL_DEFAULT_READ_TIMEOUT) and then tells its model nothing of the run.
const RunTime = 55 * time.Second

// AnswerGrace is how long after RunTime there is an answer whatever happens: a kernel that
// heeds an interrupt needs a part of it, the store of what the run left another. What is
// left of Dify's 60 s is for the way there and back.
const AnswerGrace = 3 * time.Second

// Request is a call that was decoded.
type Request struct {
	Fields    Fields
	Sandboxes *sessions
	Arrived   time.Time // when the service had its head
}

// Call is one of the protocol's calls that act on sandboxes, all of which are POST.
type Call struct {
	Name   string // of the operation; its path is this after a slash
	params []param
	do     func(context.Context, *Request) (any, error)
}

// Path is where the call is served.
func (c Call) Path() string { return "/" + c.Name }

// Do answers the call: with what is to be sent as JSON, or an error, see Failure. What is
// no run ends with ErrTime when the time for an answer is over.
func (c Call) Do(ctx context.Context, r *Request) (any, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, r.Arrived.Add(RunTime+AnswerGrace), ErrTime)
	defer cancel()
	answer, err := c.do(ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), ErrTime) {
		return nil, fmt.Errorf("%w: %w", ErrTime, err)
	}
	return answer, err
}

// ErrTime is the cause of a context whose call took too long.
var ErrTime = fmt.Errorf("there was no answer within the %v that a call may take", RunTime)

// Calls are all there are, in the order in which an agent needs them.
func Calls() []Call {
	sandbox := param{name: "sandbox_id", required: true}
	needed := func(name string) param { return param{name: name, required: true} }
	return []Call{
		{"create_sandbox", []param{{name: "conversation_id"}, {name: "language"}}, create},
		{"get_sandbox_info", []param{sandbox}, within(info)},
		{"run_code", []param{sandbox, needed("code"), {name: "language"}}, within(runCode)},
		{"execute_command", []param{sandbox, needed("command")}, within(executeCommand)},
		{"write_file", []param{sandbox, needed("content"), needed("remote_path")}, within(writeFile)},
		{"upload_file", []param{sandbox, needed("file_url"), needed("remote_filename")}, within(uploadFile)},
		{"download_file", []param{sandbox, needed("remote_path")}, within(downloadFile)},
		{"stop_sandbox", []param{sandbox}, stop},
	}
}

// within is a call in the sandbox that it names.
func within(do func(context.Context, *Request, *sandbox) (any, error)) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, r *Request) (any, error) {
		s, err := r.Sandboxes.find(r.Fields["sandbox_id"])
		if err != nil {
			return nil, err
		}
		return do(ctx, r, s)
	}
}

type createReply struct {
	SandboxID string `json:"sandbox_id"`
	Info      Info   `json:"info"`
}

func create(ctx context.Context, r *Request) (any, error) {
	s, err := r.Sandboxes.open(ctx, r.Fields["conversation_id"], strings.TrimSpace(r.Fields["language"]))
	if err != nil {
		return nil, err
	}
	known := s.info()
	return createReply{known.ID, known}, nil
}

func info(_ context.Context, _ *Request, s *sandbox) (any, error) { return s.info(), nil }

func runCode(ctx context.Context, r *Request, s *sandbox) (any, error) {
	language := strings.TrimSpace(r.Fields["language"])
	if there := s.info().Languages; language != "" && !s.runs(language) {
		return nil, invalid("language", "%s is not in this sandbox, which runs %s; create_sandbox makes one of another language", quote(language), strings.Join(there, " and "))
	}
	return run(ctx, r, s, "code", language)
}

func executeCommand(ctx context.Context, r *Request, s *sandbox) (any, error) {
	return run(ctx, r, s, "command", executor.Bash)
}

func run(ctx context.Context, r *Request, s *sandbox, field, language string) (any, error) {
	if strings.TrimSpace(r.Fields[field]) == "" {
		return nil, invalid(field, "is empty")
	}
	interrupt := r.Arrived.Add(RunTime)
	result, err := s.run(ctx, program{Source: r.Fields[field], Field: field, Language: language, Interrupt: interrupt, Answer: interrupt.Add(AnswerGrace)})
	if err != nil {
		return nil, err
	}
	return told(result, RunTime), nil
}

type fileReply struct {
	Status     string `json:"status"`
	RemotePath string `json:"remote_path"`
}

// statusSuccess is that of a file that is in the sandbox now.
const statusSuccess = "success"

// writeFile answers with the path as it was given, as the wrapper does.
func writeFile(ctx context.Context, r *Request, s *sandbox) (any, error) {
	clean, err := cleanPath("remote_path", r.Fields["remote_path"])
	if err == nil {
		err = s.write(ctx, clean, r.Fields["content"])
	}
	if err != nil {
		return nil, err
	}
	return fileReply{statusSuccess, r.Fields["remote_path"]}, nil
}

func uploadFile(ctx context.Context, r *Request, s *sandbox) (any, error) {
	clean := ""
	var err error
	if name := r.Fields["remote_filename"]; name != "" {
		if clean, err = cleanPath("remote_filename", name); err != nil {
			return nil, err
		}
	}
	if clean, err = s.fetch(ctx, r.Fields["file_url"], clean); err != nil {
		return nil, err
	}
	return fileReply{statusSuccess, absolute(clean)}, nil
}

type linkReply struct {
	Filename    string `json:"filename"`
	DownloadURL string `json:"download_url"`
}

func downloadFile(ctx context.Context, r *Request, s *sandbox) (any, error) {
	clean, err := cleanPath("remote_path", r.Fields["remote_path"])
	if err != nil {
		return nil, err
	}
	url, err := s.link(ctx, clean)
	if err != nil {
		return nil, err
	}
	return linkReply{path.Base(clean), url}, nil
}

type stopReply struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"` // of an error
}

// stop has a status of its own for what went wrong, as a workflow ends with this call.
func stop(ctx context.Context, r *Request) (any, error) {
	switch found, err := r.Sandboxes.stop(ctx, r.Fields["sandbox_id"]); {
	case errors.As(err, new(*runner.ElsewhereError)):
		return nil, err
	case err != nil:
		return stopReply{"error", "the sandbox could not be ended now; it will end by itself"}, nil
	case !found:
		return stopReply{Status: "not_found"}, nil
	}
	return stopReply{Status: "stopped"}, nil
}
