package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"notebox/executor/fetch"
	"notebox/executor/intake"
	"notebox/executor/problem"
)

// fetchAll streams every input that has a URL into the workspace. budget is how
// many bytes they may have together. What goes wrong with a URL is a problem
// that names its field.
func (x *Executor) fetchAll(ctx context.Context, all *Inputs, budget int64, work *intake.Workspace) error {
	ctx, cancel := context.WithTimeoutCause(ctx, x.fetcher.Time, fmt.Errorf("it took longer than %v", x.fetcher.Time))
	defer cancel()
	var left atomic.Int64
	left.Store(budget)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetch.AtOnce)
	for _, in := range all.List {
		if in.URL == "" {
			continue
		}
		group.Go(func() error {
			err := x.fetchOne(ctx, in, &left, work)
			if err == nil || errors.Is(err, intake.ErrWorkspace) {
				return err
			}
			return &problem.Error{Status: problem.StatusUnfit, Field: in.Field + ".url", Text: fetch.Reason(ctx, err), Cause: fetch.WithoutURL(err)}
		})
	}
	return group.Wait()
}

func (x *Executor) fetchOne(ctx context.Context, in *Input, left *atomic.Int64, work *intake.Workspace) error {
	title, err := x.fetcher.Get(ctx, in.URL, left, func(content io.Reader) (err error) {
		in.Path, in.Size, err = work.Save(content)
		return err
	})
	in.Title = title
	return err
}
