package agent

import (
	"cmp"
	"slices"

	"notebox/agent/tool"
)

// history is what a role is reminded of, question by question.
type history struct {
	exchanges [][]Message
	most      int // tokens, as tool.Tokens counts them
	questions int
}

func (h *history) messages() []Message { return slices.Concat(h.exchanges...) }

// add keeps a question with all that was said to it. Of one that was stopped only the
// last word is kept: calls in it may have no results. The oldest are forgotten when
// there is too much, the newest too if it alone is.
func (h *history) add(all []Message, said string, stopped Stopped) {
	if stopped != StoppedNot {
		said = cmp.Or(said, stopped.sentence())
		all = []Message{all[0], {Role: RoleModel, Text: said}}
	}
	h.exchanges = append(h.exchanges, slices.Clone(all))
	for len(h.exchanges) > 0 && (len(h.exchanges) > h.questions || tokens(h.messages()) > h.most) {
		h.exchanges = h.exchanges[1:]
	}
}

// tokens estimates what messages cost.
func tokens(all []Message) int {
	n := 0
	for _, m := range all {
		n += tool.Tokens(m.Text) + tool.Tokens(string(m.Opaque))
		for _, c := range m.Calls {
			n += tool.Tokens(c.Name) + tool.Tokens(c.Arguments)
		}
		for _, r := range m.Results {
			n += tool.Tokens(r.Text)
		}
	}
	return n
}
