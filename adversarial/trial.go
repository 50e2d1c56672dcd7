package adversarial

import (
	"context"
	"fmt"
	"time"
)

const (
	// replyMargin is what a reply may take beyond the time limit of its run.
	replyMargin = 5 * time.Second
	// afterwardsLimit is how long 1+1 may take after a case.
	afterwardsLimit = 30 * time.Second
)

// Check is what a case with a check does instead of sending its requests.
type Check func(ctx context.Context, t *Trial) []Failure

// Trial is one attempt of a case on a service.
type Trial struct {
	Service *Service
	Daemon  *Daemon
	Client  *Client
	Attempt Attempt
	Known   *Known    // containers that the service has had
	Start   *Holdings // what it held at its start

	load *loadMeter
}

// Run sends what the case sends and looks at the invariant.
func (t *Trial) Run(ctx context.Context, check Check) (out []Failure) {
	longest := time.Duration(0)
	for i := range t.Attempt.Requests {
		if r := &t.Attempt.Requests[i]; r.ofRun() && r.Timeout > 0 {
			longest = max(longest, r.timeout())
		}
	}
	t.load = measureLoad()
	defer t.load.stop()
	beside, err := beginNeighbour(ctx, t.Service.URL, max(time.Second, longest+time.Second))
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	if check != nil {
		out = check(ctx, t)
	} else {
		out = t.Send(ctx)
	}
	if err := beside.wait(); err != nil {
		out = append(out, Failure{Text: err.Error()})
	}
	if err := t.next(ctx); err != nil {
		out = append(out, Failure{Text: err.Error()})
	}
	if err := t.Service.Settled(ctx, t.Daemon, t.Known, t.Start, false); err != nil {
		out = append(out, Failure{Text: err.Error()})
	}
	return out
}

// Send sends the requests, one after another, and holds the answers against what
// the case expects.
func (t *Trial) Send(ctx context.Context) (out []Failure) {
	_, out = t.SendAll(ctx)
	return out
}

// SendAll is Send, and returns the answers too.
func (t *Trial) SendAll(ctx context.Context) (answers []*Answer, out []Failure) {
	var before *Answer
	for i := range t.Attempt.Requests {
		r := &t.Attempt.Requests[i]
		now, err := t.Client.Send(ctx, r, before)
		if err != nil {
			return answers, append(out, Failure{Text: fmt.Sprintf("request %d: %v", i, err)})
		}
		load := t.load.highest()
		for _, a := range now {
			before = a
			if a.Left {
				continue
			}
			for _, f := range r.Expect.Failures(a, load) {
				f.Text = fmt.Sprintf("request %d: %s", i, f.Text)
				out = append(out, f)
			}
			if r.ofRun() && a.Took > loaded(r.timeout()+replyMargin, load) {
				out = append(out, Failure{Late: true, Text: fmt.Sprintf("request %d: the reply took %v", i, a.Took)})
			}
		}
		answers = append(answers, now...)
	}
	return answers, out
}

// next runs 1+1.
func (t *Trial) next(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loaded(afterwardsLimit, t.load.highest()))
	defer cancel()
	answers, err := t.Client.Send(ctx, &Request{Code: "1+1"}, nil)
	if err != nil {
		return fmt.Errorf("the next run: %w", err)
	}
	if r := answers[0].Reply; r == nil || r.Status != "ok" || r.Text != "2\n" && r.Text != "2" {
		return fmt.Errorf("the next run answers %s", shown(string(answers[0].Body)))
	}
	return nil
}
