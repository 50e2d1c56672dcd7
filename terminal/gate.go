package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Links are the addresses that notebox issued.
type Links map[string]bool

// Add takes one that a terminal can be given.
func (l Links) Add(address string) {
	if SafeAddress(address) {
		l[address] = true
	}
}

// SafeAddress reports whether an address is HTTP's and nothing in it ends the sequence
// that it is put in.
func SafeAddress(address string) bool {
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return false
	}
	return !strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Gate lets the sequences of rendered text pass that set colours and weights, and those
// of links that were issued; every other sequence and control character is left out.
func (l Links) Gate(rendered string) string {
	var out strings.Builder
	var state byte
	linked := false
	for len(rendered) > 0 {
		sequence, width, n, next := ansi.DecodeSequence(rendered, state, nil)
		rendered, state = rendered[n:], next
		switch {
		case width > 0 || sequence == "\n" || sequence == "\t":
			out.WriteString(Defuse(sequence))
		case isColour(sequence):
			out.WriteString(sequence)
		case strings.HasPrefix(sequence, "\x1b]8;"):
			address := linkTarget(sequence)
			if l[address] {
				out.WriteString(Link(address))
				linked = true
			} else if linked {
				out.WriteString(ansi.ResetHyperlink())
				linked = false
			}
		default:
			out.WriteString(ofNoWidth(sequence))
		}
	}
	if linked {
		out.WriteString(ansi.ResetHyperlink())
	}
	return out.String()
}

// ofNoWidth is a character that takes no place of its own, as accents do.
func ofNoWidth(sequence string) string {
	if strings.ContainsFunc(sequence, IsUnsafe) {
		return ""
	}
	return sequence
}

// isColour reports whether a sequence is CSI … m with nothing but numbers.
func isColour(sequence string) bool {
	parameters, ok := strings.CutPrefix(sequence, "\x1b[")
	if !ok {
		return false
	}
	parameters, ok = strings.CutSuffix(parameters, "m")
	return ok && strings.Trim(parameters, "0123456789;:") == ""
}

// linkTarget is the address of OSC 8 ; parameters ; address.
func linkTarget(sequence string) string {
	sequence = strings.TrimPrefix(sequence, "\x1b]8;")
	_, address, _ := strings.Cut(sequence, ";")
	address = strings.TrimSuffix(address, "\x1b\\")
	return strings.TrimSuffix(address, "\a")
}

// Link begins a link (OSC 8); ansi.ResetHyperlink ends it.
func Link(address string) string { return "\x1b]8;;" + address + "\x1b\\" }
