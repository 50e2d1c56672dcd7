package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Level says how a Check ended.
type Level string

// The levels, from good to bad.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, and could be better or safer
	Wrong   Level = "wrong"
	Skipped Level = "skipped" // it was not looked at, as what it needs is wrong
)

// Check is one look at one thing.
type Check struct {
	Name string
	// Vital is that no run works if this is wrong.
	Vital bool
	// After are names of checks without which there is nothing to look at.
	After []string
	// Look returns within Patience, or is taken to hang.
	Look func(ctx context.Context) Finding
	// Patience is how long Look may take; 0 is DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is above what a call to a slow daemon or store takes, and below what
// people wait for.
const DefaultPatience = 20 * time.Second

// Finding is what a look has found.
type Finding struct {
	Level   Level  `json:"level"`
	Message string `json:"message"`        // what there is, in plain words
	Mend    string `json:"mend,omitempty"` // what to do; there unless all is well
}

// Line is a finding of the check of that name.
type Line struct {
	Check string `json:"check"`
	Finding
}

// Report is all that was found.
type Report struct {
	Works  bool   `json:"works"` // a run does
	Checks []Line `json:"checks"`
}

// Count returns how many lines have a level.
func (r Report) Count(l Level) (n int) {
	for _, line := range r.Checks {
		if line.Level == l {
			n++
		}
	}
	return n
}

func ok(format string, values ...any) Finding {
	return Finding{Level: OK, Message: fmt.Sprintf(format, values...)}
}

func warning(mend, format string, values ...any) Finding {
	return Finding{Level: Warning, Message: fmt.Sprintf(format, values...), Mend: mend}
}

func wrong(mend, format string, values ...any) Finding {
	return Finding{Level: Wrong, Message: fmt.Sprintf(format, values...), Mend: mend}
}

// Run makes all checks, one after the other, and calls tell with what each has found; tell may be
// nil. If ctx ends, those that are left are not made.
func Run(ctx context.Context, checks []Check, tell func(Line)) Report {
	out := Report{Works: true}
	bad := map[string]bool{}
	for _, c := range checks {
		line := Line{Check: c.Name}
		if i := slices.IndexFunc(c.After, func(name string) bool { return bad[name] }); i >= 0 {
			line.Finding = Finding{Level: Skipped, Message: "not looked at", Mend: fmt.Sprintf("Mend %s first.", c.After[i])}
		} else {
			line.Finding = c.look(ctx)
		}
		if ctx.Err() != nil { // which the finding may be of
			out.Works = false
			break
		}
		if line.Level == Wrong || line.Level == Skipped {
			bad[c.Name] = true
			out.Works = out.Works && !c.Vital
		}
		out.Checks = append(out.Checks, line)
		if tell != nil {
			tell(line)
		}
	}
	return out
}

// look gives up on a look that hangs: a dead mount does not heed a context.
func (c Check) look(ctx context.Context) Finding {
	patience := c.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	found := make(chan Finding, 1)
	go func() { found <- c.Look(ctx) }()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errPatience) {
		return Finding{} // Run drops it
	}
	select { // what heeds its context says more
	case f := <-found:
		return f
	case <-time.After(grace):
		return wrong("See whether the disk, the daemon or the network hangs.", "no answer within %s", patience)
	}
}

// grace is what a look has to come back after its time.
const grace = 2 * time.Second

var errPatience = errors.New("it takes too long")

// words is an error as one line that begins small.
func words(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
