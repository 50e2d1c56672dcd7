package agent

import (
	"cmp"
	"time"

	"notebox/agent/tool"
)

// Limits bound what one question may cost. A zero field is DefaultLimits'.
type Limits struct {
	Steps       int           // turns of models, of both roles together
	Corrections int           // tries after a call that failed; below 0: none
	Tokens      int64         // in and out, of all turns together
	Time        time.Duration // in all
	Output      int           // tokens of one run's outcome that the model is told
	History     int           // tokens of earlier questions that a conversation keeps for a role
	Questions   int           // earlier questions that a conversation keeps, however short
	Files       int64         // bytes of files that a conversation keeps; the newest are kept in any case
}

// DefaultLimits are for questions of people.
func DefaultLimits() Limits {
	return Limits{
		Steps:       16,               // an analysis takes about five
		Corrections: 3,                // a model that is wrong four times does not get there
		Tokens:      250_000,          // each step sends all before it again
		Time:        10 * time.Minute, // nobody waits for longer
		Output:      tool.DefaultBudget,
		History:     30_000,    // a quarter of what small models read at all
		Questions:   100,       // more than anybody refers back to
		Files:       512 << 20, // as much as /mnt/data holds
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	l.Steps = cmp.Or(l.Steps, d.Steps)
	l.Corrections = cmp.Or(l.Corrections, d.Corrections)
	l.Tokens = cmp.Or(l.Tokens, d.Tokens)
	l.Time = cmp.Or(l.Time, d.Time)
	l.Output = cmp.Or(l.Output, d.Output)
	l.History = cmp.Or(l.History, d.History)
	l.Questions = cmp.Or(l.Questions, d.Questions)
	l.Files = cmp.Or(l.Files, d.Files)
	l.Corrections = max(l.Corrections, 0)
	return l
}

// Stopped is why a question was ended before the model was done with it.
type Stopped string

// The reasons.
const (
	StoppedNot         Stopped = ""
	StoppedCorrections Stopped = "corrections"
	StoppedSteps       Stopped = "steps"
	StoppedTokens      Stopped = "tokens"
	StoppedTime        Stopped = "time"
)

// sentence is what is said to the user where the model does not, or cannot.
func (s Stopped) sentence() string {
	switch s {
	case StoppedCorrections:
		return "I could not get the code to work within the number of attempts that one question has."
	case StoppedSteps:
		return "I did not get to an answer within the number of steps that one question has."
	case StoppedTokens:
		return "I did not get to an answer within the number of tokens that one question has."
	case StoppedTime:
		return "I did not get to an answer within the time that one question has."
	}
	return "The model gave no answer."
}
