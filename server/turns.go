package server

import (
	"context"
	"errors"
	"time"

	"notebox/executor/problem"
	"notebox/runner"
)

// maxDecoding is how many large texts (above spoolMemory) are decoded at one
// time: it is work for the CPU, and each takes a few times its size of memory.
const maxDecoding = 4

// maxDecodingWaiting texts wait for that, on disk; decodingWait is far longer than it takes.
const (
	maxDecodingWaiting = 1000
	decodingWait       = time.Minute
)

// inTurn calls fn, which decodes a text of so many bytes. Only maxDecoding large ones are
// decoded at one time, and owners have turns: many of one do not hold up another's.
func (x *Executor) inTurn(ctx context.Context, owner string, size int64, fn func() error) error {
	if size < spoolMemory {
		return fn()
	}
	leave, err := x.decoding.Enter(ctx, owner)
	if full := (*runner.Error)(nil); errors.As(err, &full) {
		p := &problem.Error{Status: problem.StatusUnavailable, Text: "too many large requests are being decoded at this time", RetryAfter: intakeRetry, Cause: err}
		if full.Code == runner.CodeShare {
			p.Status, p.Text = problem.StatusTooMany, "too many large requests of this caller wait to be decoded: the rest of the places is for others"
		}
		return p
	}
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}
