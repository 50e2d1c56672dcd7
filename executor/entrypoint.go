package executor

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"notebox/environments"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// entrypoint returns the path below /mnt/data of the program that a request names instead
// of code; "" where it names none. It is among the request's files, or in a session.
func (o *Order) entrypoint() (string, error) {
	if o.Entrypoint == nil {
		return "", nil
	}
	if *o.Entrypoint == "" {
		return "", problem.Malformed("entrypoint", "is empty")
	}
	name, why := CleanName(*o.Entrypoint)
	switch {
	case why != "":
		return "", problem.Malformed("entrypoint", "%s", why)
	case o.Session == nil && !o.Inputs.files[name]:
		return "", problem.Unfit("entrypoint", "%s is not among the files of this request", problem.Quote(name))
	}
	return name, nil
}

// byExtension finds the environment of a program's file, nil if its name does not tell.
// Of several with one extension, such as an operator's own for Python, it is the first.
func (x *Executor) byExtension(name string) *environments.Environment {
	extension := path.Ext(name)
	return x.find(func(e *environments.Environment) bool {
		return extension != "" && strings.EqualFold(e.FileExtension, extension)
	})
}

// entrypointCell is the cell that runs a program of files.
func entrypointCell(env *environments.Environment, name string) (string, error) {
	if env.Entrypoint == "" {
		return "", problem.Unfit("entrypoint", "%s has none: send the program as code", env.Language)
	}
	literal, err := stringLiteral(runner.DataFolder + "/" + name)
	if err != nil {
		return "", err
	}
	// In one pass: what a name looks like is not replaced once more.
	return strings.NewReplacer("{path}", literal, "{shell}", shellWord(runner.DataFolder+"/"+name)).Replace(env.Entrypoint), nil
}

// stringLiteral writes text as JSON does, in one line for every reader: also for those
// that take U+2028 for the end of one.
func stringLiteral(text string) (string, error) {
	raw, err := jsontext.AppendQuote(nil, text)
	return strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`).Replace(string(raw)), err
}

// shellWord writes text as one word of a POSIX shell.
func shellWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// lineOf is the line of an exception: of its cell, or of the program's file. 0 if it is
// not known.
func (p *plan) lineOf(e *notebook.Exception) int {
	if p.entrypoint != "" {
		return entrypointLine(p.entrypoint, e)
	}
	return e.Line
}

// maxEntrypointLine bounds what is taken for a line: longer programs are not sent.
const maxEntrypointLine = 1 << 30

// fileURL is what frames of JavaScript have: file:///mnt/data/a%20b.ts?run=5:3:7. A query
// has a program run anew each time.
var fileURL = regexp.MustCompile(`file:///\S+`)

// entrypointLine is the line of the program's file at which an exception left it; 0 where
// the traceback does not tell.
func entrypointLine(name string, e *notebook.Exception) int {
	traceback := fileURL.ReplaceAllStringFunc(e.Traceback, func(text string) string {
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
		return text
	})
	frame := regexp.MustCompile(`(?:^|[\s"'(/])` + regexp.QuoteMeta(runner.DataFolder+"/"+name) + `(?:", line |: line |(?:\?run=\d+)?[:#])(\d{1,10})\b`)
	found := frame.FindAllStringSubmatch(traceback, -1)
	if len(found) == 0 {
		return 0
	}
	last := found[0] // the newest frame comes first
	if strings.Contains(e.Traceback, "(most recent call last)") {
		last = found[len(found)-1]
	}
	n, err := strconv.Atoi(last[1])
	if err != nil || n > maxEntrypointLine {
		return 0
	}
	return n
}
