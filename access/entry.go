package access

import "strings"

// Entry is one line of a keys file: one caller.
type Entry struct {
	Name    string   // "" for a plain key
	Owner   string   // 16 hex digits, under which the caller's things are kept
	Secrets []Secret // each of them is the caller's; two while clients change from one to the other
	Limits  Limits
}

// CheckName returns why a text cannot be a name, or nil.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return errName
	}
	return nil
}

// PlainEntry is the entry of a line that is a key and nothing else.
func PlainEntry(key string) Entry {
	s := SecretOf(key)
	return Entry{Owner: s.Owner(), Secrets: []Secret{s}}
}

// NamedEntry is the entry of a new name.
func NamedEntry(name string, l Limits, secrets ...Secret) Entry {
	return Entry{Name: name, Owner: ownerOfName(name), Secrets: secrets, Limits: l}
}

// String is the line of a named entry. A plain key's is not to be had any more.
func (e Entry) String() string {
	if e.Name == "" {
		return ""
	}
	words := []string{e.Name}
	for _, s := range e.Secrets {
		words = append(words, s.String())
	}
	if e.Owner != ownerOfName(e.Name) {
		words = append(words, optionOwner+"="+e.Owner)
	}
	if limits := e.Limits.String(); limits != "" {
		words = append(words, limits)
	}
	return strings.Join(words, " ")
}
