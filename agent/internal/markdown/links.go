package markdown

import "strings"

// Links are addresses that may be led to. Its zero value has none.
type Links struct {
	known map[string]string // by each way to write it
}

// Add takes an address of HTTP.
func (l *Links) Add(address string) {
	if l.known == nil {
		l.known = map[string]string{}
	}
	l.known[address], l.known[Target(address)] = address, address
}

// Remove forgets an address.
func (l *Links) Remove(address string) {
	delete(l.known, address)
	delete(l.known, Target(address))
}

// Find is the address that is written so, be it as the target of a link; "" if none is.
func (l *Links) Find(written string) string { return l.known[written] }

// punctuation is what may follow an address without being a part of it.
const punctuation = ".,;:!?'\")]}*_~|"

// maxFollowing is how much of it may: more than a sentence has, and few enough to be
// looked at one by one.
const maxFollowing = 16

// FindIn is Find with what may follow an address in a sentence, or as the end of a link:
// rest.
func (l *Links) FindIn(written string) (address, rest string) {
	for end := len(written); end > 0 && len(written)-end < maxFollowing; end-- {
		if address = l.known[written[:end]]; address != "" {
			return address, written[end:]
		}
		if !strings.ContainsRune(punctuation, rune(written[end-1])) {
			break
		}
	}
	return "", written
}

// Prefix is the length of the longest address that a text begins with; 0 if it begins with
// none. It looks at all addresses, but only where one may begin.
func (l *Links) Prefix(text string) (n int) {
	if !strings.HasPrefix(text, "http") {
		return 0
	}
	for written := range l.known {
		if len(written) > n && strings.HasPrefix(text, written) {
			n = len(written)
		}
	}
	return n
}

// TrimAfter is an address without what may follow it.
func TrimAfter(address string) string { return strings.TrimRight(address, punctuation) }

// Target is an address as the target of a link: with no bracket that would end it.
func Target(address string) string { return brackets.Replace(address) }

var brackets = strings.NewReplacer("(", "%28", ")", "%29")
