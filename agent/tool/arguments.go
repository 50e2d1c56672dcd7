package tool

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxArguments bounds a call, in bytes: longer than what any model writes in one turn.
	MaxArguments = 1 << 20
	// maxWrappers is how often a text may be wrapped: in a fence, a string, another call.
	maxWrappers = 6
	// maxTimeout is what a longer timeout is read as; the caller's own bound is lower.
	maxTimeout = 24 * time.Hour
	// maxToldNames is how many names of wrong fields an error repeats.
	maxToldNames = 5
	// maxToldName is how long they may be, in bytes.
	maxToldName = 40
)

// Arguments are those of a call.
type Arguments struct {
	Code         string        // not blank, valid UTF-8; but with About
	Language     string        // the name of one of the languages; "": not given
	Timeout      time.Duration // 0: not given
	Dependencies []string      // packages to be installed, as the model names them: valid UTF-8, none blank
	About        bool          // nothing is to be run: the model asks what it may rely on, see About.Tell
}

// CallError is a call that cannot be read in one way only. Nothing may be run by it.
type CallError struct {
	Reason string // what is wrong: half a sentence for a model

	packages bool // that the call names cannot be had; else it cannot be read
}

func (e *CallError) Error() string { return e.Told(Name) }

// Told is Error where the tool has another name.
func (e *CallError) Told(name string) string {
	if e.packages {
		return fmt.Sprintf("The packages of the call cannot be installed: %s. Nothing was run. Call %s again without dependencies, or with others that can be.", e.Reason, name)
	}
	return fmt.Sprintf("The call could not be read: %s. Nothing was run. Call %s again, with its arguments as one JSON object: "+
		`{"code": "import math\nprint(math.pi)"}. The whole program is one string; in it a line break is \n, a double quote \" and a backslash \\.`, e.Reason, name)
}

func unreadable(format string, args ...any) error {
	return &CallError{Reason: fmt.Sprintf(format, args...)}
}

// codeNames are those under which models send the program, without case, - and _.
var codeNames = map[string]bool{
	"code": true, "input": true, "pythoncode": true, "script": true, "source": true, "program": true, "python": true, "py": true,
	"sourcecode": true, "pythonscript": true, "codestring": true, "snippet": true, "codesnippet": true, "cell": true, "cells": true,
	"content": true, "pythonsource": true, "codetoexecute": true, "codetorun": true, "codeblock": true,
}

// wrapperNames are those of objects in which the arguments are once more.
var wrapperNames = map[string]bool{
	"arguments": true, "args": true, "parameters": true, "params": true, "kwargs": true, "toolinput": true, "input": true, "function": true,
}

var timeoutNames = map[string]bool{"timeout": true, "timeoutseconds": true, "timelimit": true}

// separators are what models write differently in a name.
var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// plainName is a name without separators, in lower case.
func plainName(name string) string { return separators.Replace(strings.ToLower(name)) }

// isField accepts the names that an object of arguments has; dependencyNames are others.
func isField(name string) bool {
	name = plainName(name)
	return codeNames[name] || timeoutNames[name] || name == "language"
}

// ParseArguments reads a call's arguments as the model wrote them: JSON, and if it
// is broken or something else, what it can only mean, in one of the languages or, where
// none is given, in Python. See loose for what JSON may be.
// Besides: code for the JSON; either in a Markdown fence, in a tag, in a JSON string
// or in the syntax of a call; the code under another name, as a list of lines, in one
// more object, or with its line breaks escaped twice. An error is a *CallError.
func ParseArguments(text string, languages ...Language) (Arguments, error) {
	return parserOf(languages).arguments(text)
}

func (p parser) arguments(text string) (Arguments, error) {
	switch {
	case len(text) > MaxArguments:
		return Arguments{}, unreadable("it is longer than %d bytes", MaxArguments)
	case !utf8.ValidString(text):
		return Arguments{}, unreadable("it is not valid UTF-8")
	}
	return checked(p.fromText(text, 0))
}

// checked makes the code one that a kernel can be given.
func checked(a Arguments, err error) (Arguments, error) {
	switch {
	case err != nil:
		return Arguments{}, err
	case a.About:
		a.Code = ""
		return a, nil
	case len(a.Code) > MaxArguments:
		return Arguments{}, unreadable("its program is longer than %d bytes", MaxArguments)
	case strings.TrimSpace(a.Code) == "":
		return Arguments{}, unreadable("its program is empty")
	case strings.ContainsRune(a.Code, 0):
		return Arguments{}, unreadable("its program has a NUL character in it")
	case !utf8.ValidString(a.Code):
		return Arguments{}, unreadable("it is not valid UTF-8")
	}
	return a, nil
}

// opening is how arguments begin that are meant to be an object, whatever follows.
var opening = regexp.MustCompile("^\\[?\\s*\\{\\s*[\"'`][\\w -]{1,40}[\"'`]?\\s*[:=]")

var openingPlain = regexp.MustCompile(`^\{\s*(\w{1,40})\s*[:=]`)

func meansObject(text string) bool {
	if opening.MatchString(text) {
		return true
	}
	m := openingPlain.FindStringSubmatch(text)
	return m != nil && (isField(m[1]) || dependencyNames[plainName(m[1])])
}

// fromText reads a text that is the arguments, in whatever it is wrapped.
func (p parser) fromText(text string, wrappers int) (Arguments, error) {
	text = strings.Trim(text, " \t\r\n\f\v\ufeff\u200b")
	switch {
	case wrappers > maxWrappers:
		return Arguments{}, unreadable("its code is wrapped more than %d times", maxWrappers)
	case text == "":
		return Arguments{}, unreadable("its arguments are empty")
	}
	inner, found, err := unwrap(text)
	switch {
	case err != nil:
		return Arguments{}, err
	case found:
		return p.fromText(inner, wrappers+1)
	}
	var known func(string) bool
	switch text[0] {
	case '{':
		known = isField
	case '[', '"', '\'', '`':
	default:
		return Arguments{Code: p.mended(text, "")}, nil
	}
	v, err := readLoose(text, known)
	switch {
	case err == nil:
		return p.fromValue(v, wrappers+1)
	case errors.Is(err, errCutOff) && (text[0] == '"' || text[0] == '`' || meansObject(text)):
		return Arguments{}, unreadable("it ends in the middle of a string, so its program may be cut off")
	case text[0] == '`' || meansObject(text):
		return Arguments{}, unreadable("its arguments are not valid JSON, and can be read in more than one way")
	}
	return Arguments{Code: p.mended(text, "")}, nil // a set, a comprehension, a string with a method
}

// fromValue reads what stands for the arguments.
func (p parser) fromValue(v value, wrappers int) (Arguments, error) {
	switch v.kind {
	case isString:
		return p.fromText(v.text, wrappers+1)
	case isObject:
		return p.fromObject(v, wrappers)
	case isList:
		if len(v.items) == 1 && v.items[0].kind == isObject {
			return p.fromObject(v.items[0], wrappers+1)
		}
	}
	code, err := p.program(v, "")
	return Arguments{Code: code}, err
}

func (p parser) fromObject(v value, wrappers int) (Arguments, error) {
	if wrappers > maxWrappers {
		return Arguments{}, unreadable("its code is wrapped more than %d times", maxWrappers)
	}
	var a Arguments
	for _, m := range v.members {
		switch name := plainName(m.name); {
		case timeoutNames[name]:
			a.Timeout = seconds(m.value)
		case dependencyNames[name] && !(name == "requirements" && isProse(m.value)):
			more, err := dependenciesOf(m.value)
			if err != nil {
				return a, err
			}
			if a.Dependencies = append(a.Dependencies, more...); len(a.Dependencies) > MaxDependencies {
				return a, unreadable("its dependencies are more than %d", MaxDependencies)
			}
		case name == "about":
			a.About = m.value.kind == isBool && m.value.text == "true" || m.value.kind == isString && strings.EqualFold(strings.TrimSpace(m.value.text), "true")
		case name == "language" && m.value.kind == isString:
			known, ok := p.language(m.value.text)
			if !ok {
				return a, unreadable("its language is %s, and this tool runs %s", told(m.value.text), p.offered())
			}
			a.Language = known
		}
	}
	if a.About {
		return a, nil
	}
	found, err := codeOf(v)
	if err != nil {
		return a, err
	}
	if found.kind == isObject || found.kind == isString && strings.HasPrefix(strings.TrimSpace(found.text), "{") {
		if inner, err := p.again(*found, wrappers+1); err == nil {
			if inner.Timeout == 0 {
				inner.Timeout = a.Timeout
			}
			if inner.Language == "" {
				inner.Language = a.Language
			}
			if len(inner.Dependencies) == 0 {
				inner.Dependencies = a.Dependencies
			}
			return inner, nil
		} else if found.kind == isObject {
			return a, err
		}
	}
	a.Code, err = p.program(*found, a.Language)
	return a, err
}

// again reads arguments that stand where their code should.
func (p parser) again(v value, wrappers int) (Arguments, error) {
	if v.kind == isObject {
		return p.fromObject(v, wrappers)
	}
	inner, err := readLoose(strings.TrimSpace(v.text), isField)
	if err != nil || inner.kind != isObject || !isCall(inner) {
		return Arguments{}, errLoose
	}
	return p.fromObject(inner, wrappers)
}

// isCall reports whether an object in a string is arguments, and not a program that
// is a dict: all its names are those of fields, and packages are beside code.
func isCall(v value) bool {
	for _, m := range v.members {
		name := plainName(m.name)
		if !isField(name) && name != "name" && !wrapperNames[name] && (!dependencyNames[name] || v.member("code") == nil) {
			return false
		}
	}
	return len(v.members) > 0
}

// codeOf finds the one member that has the code: code itself, or the one of another
// name, or else what the arguments are wrapped in.
func codeOf(v value) (*value, error) {
	var exact, other, wrapper []*value
	var names []string
	for i := range v.members {
		m := &v.members[i]
		name := plainName(m.name)
		switch {
		case m.value.kind == isNull:
		case m.name == "code":
			exact = append(exact, &m.value)
		case wrapperNames[name] && (m.value.kind == isObject || !codeNames[name]):
			wrapper = append(wrapper, &m.value)
		case codeNames[name]:
			other = append(other, &m.value)
		default:
			if len(names) < maxToldNames {
				names = append(names, told(m.name))
			}
		}
	}
	for _, list := range [][]*value{exact, other, wrapper} {
		switch {
		case len(list) == 0:
			continue
		case !allEqual(list):
			return nil, unreadable("it has more than one program")
		}
		if s := list[0]; s.kind == isString && len(wrapper) > 0 && s == wrapper[0] {
			inner, err := readLoose(strings.TrimSpace(s.text), isField)
			if err == nil {
				return &inner, nil
			}
		}
		return list[0], nil
	}
	if len(names) == 0 {
		return nil, unreadable("it has no field code")
	}
	return nil, unreadable("it has no field code, but %s", strings.Join(names, ", "))
}

func allEqual(list []*value) bool {
	for _, v := range list[1:] {
		if v.kind != isString || list[0].kind != isString || v.text != list[0].text {
			return false
		}
	}
	return true
}

// program is the code of a field: a string, or a list of lines.
func (p parser) program(v value, language string) (string, error) {
	switch v.kind {
	case isString:
		inner, found, err := unfence(strings.TrimSpace(v.text))
		switch {
		case err != nil:
			return "", err
		case found:
			return p.mended(inner, language), nil
		}
		return p.mended(v.text, language), nil
	case isList:
		if len(v.items) == 0 {
			return "", unreadable("its program is empty")
		}
		lines := make([]string, len(v.items))
		for i, item := range v.items {
			if item.kind != isString {
				return "", unreadable("its program is a list of something else than lines")
			}
			lines[i] = strings.TrimSuffix(item.text, "\n")
		}
		return strings.Join(lines, "\n"), nil
	}
	return "", unreadable("its program is %s and not a string", map[kind]string{isNull: "null", isBool: "a truth value", isNumber: "a number", isObject: "an object"}[v.kind])
}

// seconds is a timeout, 0 if it is none.
func seconds(v value) time.Duration {
	if v.kind != isNumber && v.kind != isString {
		return 0
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v.text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) || f <= 0 {
		return 0
	}
	return max(time.Millisecond, time.Duration(min(f, maxTimeout.Seconds())*float64(time.Second)))
}

// told repeats a model's word in an error.
func told(name string) string {
	if len(name) > maxToldName {
		name = strings.ToValidUTF8(name[:maxToldName], "") + "…"
	}
	return strconv.Quote(name)
}
