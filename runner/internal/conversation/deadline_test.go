package conversation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const jobTimeout = 10 * time.Second

// sentJob is a job whose frames a test delivers. cancels counts the frames that cancel it.
func sentJob(timeout time.Duration, session bool) (job *Job, cancels *int) {
	s := &countingSandbox{fuzzSandbox: fuzzSandbox{Reader: bytes.NewReader(nil)}}
	c := New(s, slog.New(slog.DiscardHandler))
	c.session = session
	limits := runner.DefaultLimits()
	limits.Timeout = timeout
	c.job = newJob(c, runner.Spec{Limits: limits}, time.Now())
	return c.job, &s.cancels
}

type countingSandbox struct {
	fuzzSandbox
	cancels int
}

func (s *countingSandbox) Write(p []byte) (int, error) {
	if frame.Kind(p[1]) == frame.KindCancel {
		s.cancels++
	}
	return len(p), nil
}

func sendOutcome(j *Job) { j.deliver(frame.KindOutcome, []byte(`{"status":"ok"}`)) }
func sendDone(j *Job)    { j.deliver(frame.KindDone, []byte(`{"collected":true}`)) }

func TestJobTime(t *testing.T) {
	const second, never = time.Second, time.Duration(0)
	for _, c := range []struct {
		desc                    string
		session                 bool
		outcome, cancelled, end time.Duration // when that happens
		ends                    time.Duration // when the conversation is over by this side
		abandoned               time.Duration
		cancels                 int
	}{
		{desc: "goes by", ends: jobTimeout + RunSlack},
		{desc: "goes by in a session", session: true, ends: jobTimeout + SessionSlack},
		{desc: "is extended by the outcome", outcome: 5 * second, ends: 5*second + CollectTimeout},
		{desc: "is shortened by a cancel", cancelled: second, ends: second + CancelSlack, cancels: 1},
		{desc: "is set anew by a cancel in a session", session: true, cancelled: second, ends: second + SessionSlack, cancels: 1},
		{desc: "is extended by a late cancel", cancelled: jobTimeout + 3*second, ends: jobTimeout + 3*second + CancelSlack, cancels: 1},
		{desc: "is extended after a cancel", cancelled: second, outcome: 2 * second, abandoned: 2*second + CancelSlack, ends: 2*second + CollectTimeout, cancels: 1},
		{desc: "goes on after a cancel that follows the outcome", outcome: second, cancelled: 2 * second, abandoned: 2*second + CancelSlack, ends: second + CollectTimeout},
		{desc: "is stopped", outcome: second, end: 2 * second},
		{desc: "is stopped for good", outcome: second, end: 2 * second, cancelled: 3 * second},
		{desc: "is extended too late", outcome: 20 * second, ends: jobTimeout + RunSlack},
		{desc: "is stopped too late", outcome: 20 * second, end: 20 * second, ends: jobTimeout + RunSlack},
	} {
		t.Run(c.desc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job, cancels := sentJob(jobTimeout, c.session)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				after := func(d time.Duration, do func()) {
					if d != never {
						time.AfterFunc(d, do)
					}
				}
				after(c.outcome, func() { sendOutcome(job) })
				after(c.end, func() { sendDone(job) })
				after(c.cancelled, cancel)
				var ends []time.Duration
				job.c.OnEnd(func(why error) {
					require.ErrorIs(t, why, ErrDeadline)
					ends = append(ends, time.Since(begun))
				})
				abandoned := never // since then, nobody takes frames
				go func() {
					for {
						_, _, err := job.next()
						if errors.Is(err, errAbandoned) {
							abandoned = time.Since(begun)
						}
						if err != nil {
							return
						}
					}
				}()
				job.keepTime(ctx)
				if c.end == never || c.ends != never {
					require.Equal(t, c.ends, time.Since(begun))
				} else {
					require.Equal(t, c.end, time.Since(begun))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, c.abandoned, abandoned)
				job.abandon() // for who waits for frames
				require.Equal(t, c.ends != never, job.late.Load())
				require.Equal(t, c.ends == never, job.Done())
				require.Equal(t, c.cancels, *cancels)
				if c.ends == never {
					require.Empty(t, ends)
				} else {
					require.Equal(t, []time.Duration{c.ends}, ends, "once")
				}
			})
		})
	}
}

// TestJobTimeAtTheLastMoment has time that is over and an outcome meet: whichever comes
// first holds, and a caller sees nothing in between.
func TestJobTimeAtTheLastMoment(t *testing.T) {
	for range 200 {
		job, _ := sentJob(time.Microsecond-RunSlack, false)
		go func() {
			time.Sleep(time.Microsecond)
			sendOutcome(job)
			sendDone(job)
		}()
		out, err := job.Receive(t.Context(), &fuzzSink{t: t})
		require.NoError(t, err)
		if out.Status == runner.StatusOK {
			require.False(t, job.late.Load())
			require.NoError(t, job.c.Over())
		} else {
			require.Equal(t, runner.StatusTimeout, out.Status)
			require.False(t, job.Answered())
		}
		job.c.Close(errAbandoned)
	}
}

// TestJobTimeThatIsOver when what it was for has come already: that counts.
func TestJobTimeThatIsOver(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			job, _ := sentJob(-RunSlack, false)
			sendOutcome(job)
			begun := time.Now()
			go func() {
				time.Sleep(CollectTimeout / 2)
				sendDone(job)
			}()
			job.keepTime(t.Context())
			require.Equal(t, CollectTimeout/2, time.Since(begun), "it is extended")

			job, _ = sentJob(-RunSlack, false)
			sendOutcome(job)
			sendDone(job)
			job.keepTime(t.Context())
			require.False(t, job.late.Load())
			require.NoError(t, job.c.Over())
		})
	}
}
