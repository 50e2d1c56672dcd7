package ask

import (
	"context"
	"fmt"

	"notebox/access"
	"notebox/agent"
	"notebox/agent/tool"
	"notebox/executor"
	"notebox/server/web"
)

// runs runs an agent's code as its caller's, with the same limits.
type runs struct {
	of     *handler
	caller *access.Caller
	base   string // what links start with
}

// Execute implements agent.Executor. Sessions are no part of POST /run.
func (x *runs) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	o, err := x.order(r)
	if err != nil {
		return nil, ofModelsCall(err)
	}
	run, err := x.of.Executor.Begin(ctx, x.caller, o)
	if err != nil {
		return nil, ofModelsCall(err)
	}
	defer run.Leave()
	run.Start(executor.Silence{})
	if _, err := run.Wait(ctx); err != nil {
		return nil, ofModelsCall(err)
	}
	result := web.ToolResult(run.Result())
	return &result, nil
}

// order is what a model wants to run.
func (x *runs) order(r agent.Run) (*executor.Order, error) {
	o := &executor.Order{Code: &r.Code, Language: &r.Language, Dependencies: r.Dependencies, LinkImages: true, Base: x.base}
	if r.Timeout > 0 {
		o.Timeout = new(r.Timeout.Seconds())
	}
	for i, f := range r.Files {
		in, err := o.Inputs.Add(fmt.Sprintf("files[%d]", i), f.Name)
		if err != nil {
			return nil, err
		}
		in.Size, in.Stored = f.Size, f.Open
	}
	return o, nil
}

// ofModelsCall makes an error for the model of one that it can do something about.
func ofModelsCall(err error) error {
	if told := web.OfModel(err); told != nil {
		return told
	}
	return err
}
