package main

import (
	"flag"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// variablePrefix begins the variables of all flags.
const variablePrefix = "NOTEBOX_"

// lettersPerTypo is how many letters a name has for each that may be wrong: a shorter one would
// be near to any other.
const lettersPerTypo = 3

// otherVariables begin those of other commands, of the tests, and of the scripts.
var otherVariables = regexp.MustCompile(`^NOTEBOX_(MCP|HEALTHCHECK|TEST|FUZZ|HYPOTHESIS|LOAD|SOAK|IMAGE_REF|DIR|URL|KEY|API_KEY)(_|$)`)

// serviceLinks are the variables that Kubernetes sets for a Service called notebox, or
// notebox-something: https://kubernetes.io/docs/tutorials/services/connect-applications-service/.
var serviceLinks = regexp.MustCompile(`^NOTEBOX_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=|^NOTEBOX_(\w+_)?PORT=(tcp|udp|sctp)://`)

// warnOfVariables logs each variable of the environment and of a file that begins as those of
// flags do, and is none: it is passed over, and may be a misspelt one.
func warnOfVariables(log *slog.Logger, flags *flag.FlagSet, environ []string, file string) {
	own := variablesOf(flags)
	known := slices.Concat(own, variablesOf(chatCommand().FlagSet), variablesOf(discordCommand().FlagSet))
	_ = readDotenv(file, func(name, value string) error { // a line that is none has been told of
		environ = append(environ, name+"="+value)
		return nil
	})
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case value == "" || !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name):
		case serviceLinks.MatchString(entry) || otherVariables.MatchString(name):
		default:
			if near := nearest(name, own); near != "" {
				log.Warn("a variable is passed over: no flag has it", "variable", name, "meant", near)
			} else {
				log.Warn("a variable is passed over: no flag has it", "variable", name)
			}
		}
	}
}

func variablesOf(flags *flag.FlagSet) (names []string) {
	flags.VisitAll(func(f *flag.Flag) {
		names = append(names, variableOf(f.Name))
	})
	return names
}

// variableOf is the variable of a flag.
func variableOf(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// nearest is the one of names that begins with name, or differs least from it; "" if none is
// near.
func nearest(name string, names []string) (near string) {
	if i := slices.IndexFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"_") }); i >= 0 {
		return names[i]
	}
	least := (len(name)-len(variablePrefix))/lettersPerTypo + 1
	for _, other := range names {
		if n := typos(name, other); n < least {
			least, near = n, other
		}
	}
	return near
}

// typos is how many letters have to be put in, left out or changed to make b of a
// (Levenshtein's distance).
func typos(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
