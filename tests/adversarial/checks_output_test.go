package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

var outputChecks = map[string]Check{
	"all_lines":   allLines,
	"no_log_file": noLogFile,
	"round_trip":  roundTrip,
}

// allLines are the numbers up to 10,000, and hi.
func allLines(ctx context.Context, t *Trial) []Failure {
	answers, out := t.SendAll(ctx)
	var want strings.Builder
	for i := range 10_000 {
		fmt.Fprintln(&want, i)
	}
	want.WriteString("hi\n")
	if len(out) == 0 && answers[0].Reply.Text != want.String() {
		out = append(out, Failure{Text: "lines are missing: " + shown(answers[0].Reply.Text)})
	}
	return out
}

// noLogFile looks for a log that the daemon keeps of a container.
func noLogFile(ctx context.Context, t *Trial) (out []Failure) {
	logs := map[string]bool{}
	looks := 0
	look := func(ctx context.Context) {
		ids, _ := t.Daemon.Containers(ctx, t.Service.ID)
		for _, id := range ids {
			if c, err := t.Daemon.api.ContainerInspect(ctx, id); err == nil {
				looks++
				logs[c.LogPath] = true
			}
		}
	}
	during(ctx, look, func() {
		out = t.Send(ctx)
		time.Sleep(settlePoll)
	})
	for try := 0; looks == 0 && try < 100; try++ { // the sandboxes that wait are made in the same way
		look(ctx)
		time.Sleep(settlePoll)
	}
	if delete(logs, ""); looks == 0 || len(logs) > 0 {
		out = append(out, Failure{Text: fmt.Sprintf("in %d looks the containers had the logs %v", looks, logs)})
	}
	return out
}

// roundTrip holds the cells of the stored notebook against what was sent.
func roundTrip(ctx context.Context, t *Trial) []Failure {
	r := t.Attempt.Requests[0] // a copy
	r.Code = strings.ReplaceAll(r.Code, "{1MB}", strings.Repeat("x", 1_000_000))
	t.Attempt.Requests = []Request{r}
	answers, out := t.SendAll(ctx)
	if len(out) > 0 {
		return out
	}
	stored, err := t.Client.Send(ctx, &Request{Method: "GET", Path: "{notebook}"}, answers[0])
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	var document struct {
		Cells []struct{ Source sourceLines }
	}
	if err := json.Unmarshal(stored[0].Body, &document); err != nil {
		return []Failure{{Text: fmt.Sprintf("the notebook: %v", err)}}
	}
	sent := r.Cells
	if sent == nil {
		sent = []string{r.Code}
	}
	for i, cell := range sent {
		if len(document.Cells) != len(sent) || string(document.Cells[i].Source) != cell {
			out = append(out, Failure{Text: fmt.Sprintf("cell %d came back as %s, sent was %s", i, shown(fmt.Sprint(document.Cells)), shown(cell))})
		}
	}
	return out
}

// sourceLines is nbformat's text: a string, or a list of them.
type sourceLines string

// UnmarshalJSON implements json.Unmarshaler.
func (s *sourceLines) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*s = sourceLines(one)
		return nil
	}
	var many []string
	err := json.Unmarshal(raw, &many)
	*s = sourceLines(strings.Join(many, ""))
	return err
}
