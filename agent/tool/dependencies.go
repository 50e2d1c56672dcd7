package tool

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bounds on the packages of a call; notebox takes no more either.
const (
	// MaxDependencies is how many a call may name.
	MaxDependencies = 64
	// maxDependency is how long one may be, in bytes.
	maxDependency = 256
	// maxAhead is how far a list of packages is looked for behind a quote that may end the
	// program, in bytes: what a model writes in one.
	maxAhead = 4 << 10
)

// dependencyNames are those under which models name packages, as plainName leaves them. They
// are no fields as the others are, see isField: programs have dicts and calls with the same
// names.
var dependencyNames = map[string]bool{"dependencies": true, "packages": true, "requirements": true}

// ParseDependencies reads packages as a model wrote them, in JSON: a list of strings, one
// string that has several, or null. An error is a *CallError.
func ParseDependencies(raw []byte) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := readLoose(string(raw), nil)
	if err != nil {
		return nil, unreadable("its dependencies are not valid JSON")
	}
	return dependenciesOf(v)
}

// dependenciesOf reads those of a field. If they are no packages they are not passed
// over: the program would fail for want of them, and the model not know why.
func dependenciesOf(v value) (all []string, err error) {
	switch v.kind {
	case isNull:
		return nil, nil
	case isBool:
		if v.text == "false" {
			return nil, nil
		}
	case isString:
		if list, err := readLoose(strings.TrimSpace(v.text), nil); err == nil && list.kind == isList {
			return dependenciesOf(list) // encoded twice
		}
		all, err = splitDependencies(v.text)
	case isList:
		for _, item := range v.items {
			if item.kind != isString {
				return nil, unreadable("its dependencies are a list of something else than strings")
			}
			if text := strings.TrimSpace(item.text); text != "" {
				all = append(all, text)
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case v.kind != isString && v.kind != isList:
		return nil, unreadable(`its dependencies are no list of strings, such as ["polars==1.*", "six"]`)
	case len(all) > MaxDependencies:
		return nil, unreadable("its dependencies are more than %d", MaxDependencies)
	}
	for _, one := range all {
		if len(one) > maxDependency || !utf8.ValidString(one) {
			return nil, unreadable("its dependencies have one that is no name of a package: %s", told(one))
		}
	}
	return all, nil
}

var (
	// installCommand is what stands before packages on a command line.
	installCommand = regexp.MustCompile(`^[!%]?(?:python3? -m )?(?:pip3?|npm|apt|apt-get) (?:install|add|i) `)
	// comment is one of a file of requirements.
	comment = regexp.MustCompile(`(?:^|\s)#.*`)
	// oneDependency is a name, with extras in brackets and versions: those begin with an
	// operator, and so are told from the next name though blanks and commas are in them.
	oneDependency = regexp.MustCompile(`^[^\s,;\[\]<>=!~]+(?:\s*\[[^\[\]]*\])?(?:\s*,?\s*[<>=!~]=?=?\s*[^\s,;\[\]<>=!~]+)*`)
)

// isProse reports whether a field has words and no packages: requirements are in some models'
// calls what the program is to do.
func isProse(v value) bool {
	return v.kind == isString && !installCommand.MatchString(v.text) && !strings.ContainsAny(v.text, "=<>~[\n,") && len(strings.Fields(v.text)) > 2
}

// splitDependencies reads several of one text: with blanks, commas or lines between.
func splitDependencies(text string) (all []string, err error) {
	for _, line := range strings.Split(text, "\n") {
		rest := strings.TrimSpace(comment.ReplaceAllString(line, ""))
		rest = installCommand.ReplaceAllString(rest, "")
		for rest = strings.TrimLeft(rest, " \t\r,;"); rest != ""; rest = strings.TrimLeft(rest, " \t\r,;") {
			one := oneDependency.FindString(rest)
			if one == "" {
				return nil, unreadable("its dependencies cannot be told apart at %s: write them as a list of strings", told(rest))
			}
			if all = append(all, one); len(all) > MaxDependencies {
				return nil, unreadable("its dependencies are more than %d", MaxDependencies)
			}
			rest = rest[len(one):]
		}
	}
	return all, nil
}

// dependenciesAhead reports whether a list of packages is at hand, with its colon, behind
// which the arguments end or go on. Less is not enough to end a program that may itself
// have such a name in it.
func (l *loose) dependenciesAhead() bool {
	if l.next() != ':' {
		return false
	}
	window := &loose{text: l.text[:min(len(l.text), l.at+maxAhead)], at: l.at + 1}
	if window.next() != '[' {
		return false
	}
	v, err := window.list(maxDepth - 1) // of what nests no more
	if err != nil || window.text[window.at-1] != ']' {
		return false
	}
	if _, err := dependenciesOf(v); err != nil {
		return false
	}
	l.at = window.at
	switch l.next() {
	case '}':
		return l.closes()
	case ',':
		l.at++
		name := l.nameAhead()
		return name != "" && l.known(name) && l.next() == ':'
	}
	return false
}

// PackagesError is what a model is told whose call names packages that it cannot have;
// reason is half a sentence.
func PackagesError(format string, args ...any) *CallError {
	return &CallError{Reason: fmt.Sprintf(format, args...), packages: true}
}

// ErrSessionPackages is of a call in a session that names packages.
var ErrSessionPackages error = PackagesError("the call is in a session, whose packages are chosen when it is opened")
