package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"notebox/access"
	"notebox/agent"
	"notebox/agent/tool"
)

// agentExecutor runs an agent's code as its caller's: as a request of its own would,
// with the same limits.
type agentExecutor struct {
	server *Server
	caller *access.Caller
	base   string // what links start with
}

// Execute implements agent.Executor. Sessions are no part of POST /run.
func (x *agentExecutor) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	s := x.server
	e := s.newExecution(x.caller, false)
	e.ctx = below(e.ctx, ctx)
	if err := x.plan(ctx, e, r); err != nil {
		s.discard(e)
		return nil, ofModelsCall(err)
	}
	t := &ticket{server: s, id: e.id, owner: e.owner, limits: e.plan.spec.Limits, own: e}
	t.start(silence{})
	end, err := t.wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case end.problem != nil:
		return nil, ofModelsCall(end.problem)
	}
	result := resultOf(e.answer)
	return &result, nil
}

// plan checks what a model wants to run, and makes it known to this process.
func (x *agentExecutor) plan(ctx context.Context, e *execution, r agent.Run) (err error) {
	req := &request{Code: ptr(text(r.Code)), Language: ptr(text(r.Language)), Dependencies: texts(r.Dependencies), linkImages: true}
	if r.Timeout > 0 {
		req.Timeout = ptr(seconds(r.Timeout.Seconds()))
	}
	for i, f := range r.Files {
		in, problem := req.inputs.add(fmt.Sprintf("files[%d]", i), f.Name)
		if problem != nil {
			return problem
		}
		in.size, in.stored = f.Size, f.Open
	}
	p, err := x.server.makePlan(ctx, req, x.caller)
	if err != nil {
		return err
	}
	p.started, p.base = x.server.now(), x.base
	if p.spec.ID, err = runID(p.started); err != nil {
		return err
	}
	p.spec.Owner = e.owner
	e.id, e.plan = p.spec.ID, p
	return x.server.register(ctx, e)
}

// ofModelsCall makes an error for the model of what is wrong with its program, and of
// packages that it cannot have.
func ofModelsCall(err error) error {
	var p *problem
	if errors.As(err, &p) && p.ofPackages() {
		return tool.PackagesError("%s", p.detail())
	}
	if errors.As(err, &p) && p.field == "code" && p.status < http.StatusInternalServerError {
		return &tool.CallError{Reason: "its program " + p.text}
	}
	return err
}
