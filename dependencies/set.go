package dependencies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"notebox/environments"
	"notebox/runner"
)

// Bounds on what a request may ask for.
const (
	maxEntries    = 64  // a long requirements file; more than this is an environment of its own
	maxEntryBytes = 256 // a name of npm's has 214 at most
)

// Set are the packages of a request in their one form, sorted. The zero value is none.
type Set struct {
	Notation string // one of environments.Notations
	Entries  []string
}

// Empty reports whether nothing is asked for.
func (s Set) Empty() bool { return len(s.Entries) == 0 }

// modules are what a sandbox that waits may import ahead: most packages of Python have
// their module's name, and if one has not, nothing comes of it.
func (s Set) modules(kernel string) []string {
	if s.Notation != "pip" || kernel != "" && kernel != runner.PythonKernel {
		return nil
	}
	var all []string
	for _, entry := range s.Entries {
		name := entry[:strings.IndexFunc(entry+"=", func(r rune) bool { return !strings.ContainsRune(nameRunes, r) })]
		all = append(all, strings.ReplaceAll(name, "-", "_"))
	}
	return slices.Compact(all)
}

// nameRunes are those of a name of pip's in its one form.
const nameRunes = "abcdefghijklmnopqrstuvwxyz0123456789-"

// InvalidError is an entry that is not taken.
type InvalidError struct {
	Index     int    // of the entry; -1 for all of them
	Reason    string // public
	Forbidden bool   // it is well-formed, and the operator does not allow it
}

func (e *InvalidError) Error() string {
	if e.Index < 0 {
		return "dependencies: " + e.Reason
	}
	return fmt.Sprintf("dependencies[%d]: %s", e.Index, e.Reason)
}

// Policy is what the operator allows.
type Policy struct {
	// Allow are the names of packages that requests may ask for, in any notation; nil:
	// all. What those need in turn is not looked at.
	Allow []string
	// Builds lets packages that are not prebuilt run their own code while they are
	// installed, with a network to the registry.
	Builds bool
}

// Check says which entry of Allow can be the name of no package in any of these environments,
// or nil. Versions are not part of a name.
func (p Policy) Check(all []environments.Environment) error {
	names := func(allowed string) bool {
		return slices.ContainsFunc(all, func(e environments.Environment) bool {
			if e.Dependencies == nil {
				return false
			}
			parse := readerOf(*e.Dependencies)
			if parse == nil {
				return false
			}
			found, err := parseEntry(parse, allowed)
			return err == nil && found.text == found.name
		})
	}
	for _, allowed := range p.Allow {
		if !names(allowed) {
			return fmt.Errorf("%q is not the name of a package, without versions, in any language", allowed)
		}
	}
	return nil
}

// notations say how an entry is read.
var notations = map[string]func(string) (entry, error){
	"pip": parsePip,
	"npm": parseNPM,
	"apt": parseAPT,
}

// entry is one that was read: its name in its one form, and all of it.
type entry struct{ name, text string }

// readerOf says how entries for an environment are read; nil if they cannot be.
func readerOf(of environments.Dependencies) func(string) (entry, error) {
	parse := notations[of.Notation]
	if parse == nil || of.Prefix == "" {
		return parse
	}
	return func(given string) (entry, error) { return parsePrefixed(of.Prefix, given) }
}

// Parse reads the entries of a request for an environment. The error is an *InvalidError.
func Parse(of environments.Dependencies, entries []string, policy Policy) (Set, error) {
	if len(entries) == 0 {
		return Set{}, nil
	}
	parse := readerOf(of)
	if parse == nil {
		return Set{}, &InvalidError{Index: -1, Reason: "are not supported in this language"}
	}
	if len(entries) > maxEntries {
		return Set{}, &InvalidError{Index: -1, Reason: fmt.Sprintf("are more than %d", maxEntries)}
	}
	s, texts := Set{Notation: of.Notation}, map[string]string{} // by name
	for i, given := range entries {
		e, err := parseEntry(parse, given)
		if err != nil {
			return Set{}, &InvalidError{Index: i, Reason: err.Error()}
		}
		if !policy.allows(parse, e.name) {
			return Set{}, &InvalidError{Index: i, Forbidden: true, Reason: fmt.Sprintf("this service's operator does not allow %s; allowed are: %s", e.name, strings.Join(policy.Allow, ", "))}
		}
		if before, twice := texts[e.name]; twice && before != e.text && of.Notation != "pip" { // pip takes what fits both
			return Set{}, &InvalidError{Index: i, Reason: fmt.Sprintf("asks for %s a second time, with another version", e.name)}
		}
		texts[e.name] = e.text
		s.Entries = append(s.Entries, e.text)
	}
	slices.Sort(s.Entries)
	s.Entries = slices.Compact(s.Entries)
	return s, nil
}

func parseEntry(parse func(string) (entry, error), given string) (entry, error) {
	if len(given) > maxEntryBytes {
		return entry{}, fmt.Errorf("has more than %d bytes", maxEntryBytes)
	}
	if strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r > '~' }) {
		return entry{}, fmt.Errorf("has a character that no name or version has")
	}
	return parse(strings.Trim(given, " "))
}

// allows compares names in their one form.
func (p Policy) allows(parse func(string) (entry, error), name string) bool {
	return p.Allow == nil || slices.ContainsFunc(p.Allow, func(allowed string) bool {
		e, err := parseEntry(parse, allowed)
		return err == nil && e.name == name
	})
}

// hash names something by all that it depends on.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
}
