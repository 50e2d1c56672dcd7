package adversarial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// replyMargin is what a reply may take beyond the time limit of its run.
	replyMargin = 5 * time.Second
	// afterwardsLimit is how long 1+1 may take after a case: with no sandbox warm a
	// start is a second on a quiet machine.
	afterwardsLimit = 30 * time.Second
)

// Check is what a case with a check does instead of sending its requests.
type Check func(ctx context.Context, t *Trial) []Failure

// Trial is a case on a service.
type Trial struct {
	Service *Service
	Daemon  *Daemon
	Client  *Client
	Checks  map[string]Check
	Known   *Known    // sandboxes that the service has had
	Start   *Holdings // what it held at its start

	Attempt Attempt // the one under way
	load    *loadMeter
}

// Result is what came of a case.
type Result struct {
	Failures []Failure
	Again    string // why something had to be tried a second time; else empty
}

func (r *Result) add(err error) {
	if err != nil {
		r.Failures = append(r.Failures, Failure{Text: err.Error()})
	}
}

// Run sends a case and its variants beside a neighbour, and looks at the invariant.
func (t *Trial) Run(ctx context.Context, c *Case) (out Result) {
	t.load = measureLoad()
	defer t.load.stop()
	beside, err := beginNeighbour(ctx, t.Service.URL)
	if err != nil {
		out.add(err)
		return out
	}
	for _, v := range c.attempts() {
		failures, again := t.twice(ctx, v.Attempt)
		for _, f := range failures {
			if v.Name != "" {
				f.Text = v.Name + ": " + f.Text
			}
			out.Failures = append(out.Failures, f)
		}
		if again != "" {
			out.Again = again
		}
	}
	out.add(beside.end(ctx))
	out.add(t.next(ctx))
	out.add(t.Service.Settled(ctx, t.Daemon, t.Known, t.Start, false))
	return out
}

// twice tries what failed by time alone, on a machine under load, a second time.
func (t *Trial) twice(ctx context.Context, a Attempt) (failures []Failure, again string) {
	t.Attempt = a
	failures = t.once(ctx)
	wrong := slices.ContainsFunc(failures, func(f Failure) bool { return !f.Late })
	if len(failures) == 0 || wrong {
		return failures, ""
	}
	return t.once(ctx), failures[0].Text
}

func (t *Trial) once(ctx context.Context) []Failure {
	if t.Attempt.Check == "" {
		return t.Send(ctx)
	}
	check, ok := t.Checks[t.Attempt.Check]
	if !ok {
		return []Failure{{Text: "there is no check " + t.Attempt.Check}}
	}
	return check(ctx, t)
}

// Send sends the requests, one after another, and holds the answers against what
// the case expects.
func (t *Trial) Send(ctx context.Context) []Failure {
	_, out := t.SendAll(ctx)
	return out
}

// SendAll is Send, and returns the answers too.
func (t *Trial) SendAll(ctx context.Context) (answers []*Answer, out []Failure) {
	if t.Attempt.Session == nil {
		return t.sendEach(ctx, t.Attempt.Requests)
	}
	s, err := t.Open(ctx, t.Attempt.Session)
	if err != nil {
		return nil, []Failure{{Text: err.Error()}}
	}
	answers, out = t.sendEach(ctx, s.within(t.Attempt.Requests))
	if err := s.Close(ctx); err != nil {
		out = append(out, Failure{Text: err.Error()})
	}
	return answers, out
}

func (t *Trial) sendEach(ctx context.Context, requests []Request) (answers []*Answer, out []Failure) {
	var before *Answer
	all := make([][]*Answer, len(requests))
	errs := make([]error, len(requests))
	var beside sync.WaitGroup
	for i := range requests {
		r := &requests[i]
		if r.Beside {
			last := before
			beside.Go(func() { all[i], errs[i] = t.Client.Send(ctx, r, last) })
			continue
		}
		if all[i], errs[i] = t.Client.Send(ctx, r, before); errs[i] != nil {
			break
		}
		for _, a := range all[i] {
			if a.Reply != nil {
				before = a
			}
		}
	}
	beside.Wait()
	for i := range requests {
		answers = append(answers, all[i]...)
		if errs[i] != nil {
			out = append(out, Failure{Text: fmt.Sprintf("request %d: %v", i, errs[i])})
			continue
		}
		for _, f := range t.hold(&requests[i], all[i]) {
			f.Text = fmt.Sprintf("request %d: %s", i, f.Text)
			out = append(out, f)
		}
	}
	return answers, out
}

// hold holds the answers to a request against what it expects.
func (t *Trial) hold(r *Request, answers []*Answer) (out []Failure) {
	load := t.load.highest()
	for _, a := range answers {
		if a.Left {
			continue
		}
		out = append(out, r.Expect.Failures(a, load)...)
		if r.ofRun() && a.Took > loaded(r.timeout()+replyMargin, load) {
			out = append(out, Failure{Late: true, Text: fmt.Sprintf("the reply took %v", a.Took)})
		}
	}
	return out
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
