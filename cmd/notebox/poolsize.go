package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"notebox/environments"
)

// poolSize is a flag: how many sandboxes wait, by language. A number alone is
// for the default environment.
type poolSize map[string]int

func (p *poolSize) String() string {
	var parts []string
	for _, language := range slices.Sorted(maps.Keys(*p)) {
		if language == "" {
			return strconv.Itoa((*p)[language])
		}
		parts = append(parts, fmt.Sprintf("%s=%d", language, (*p)[language]))
	}
	return strings.Join(parts, ",")
}

func (p *poolSize) Set(text string) error {
	*p = poolSize{}
	for _, part := range strings.Split(text, ",") {
		language, number, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			language, number = "", language
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of sandboxes", number)
		}
		if _, twice := (*p)[language]; twice {
			return fmt.Errorf("%q is there twice", part)
		}
		(*p)[language] = n
	}
	return nil
}

// warmShare is the part of the host's memory, one in so many, that waiting
// sandboxes take by default, and warmMemory what each of them takes, in bytes.
const (
	warmShare  = 8
	warmMemory = 160 << 20
)

// defaultPool is as many as can be refilled at one time, and fit.
func defaultPool(cores int, memory int64) poolSize {
	return poolSize{"": max(1, min(cores, int(memory/warmShare/warmMemory)))}
}

// of returns the number for each environment, by its name.
func (p poolSize) of(all []environments.Environment) (map[string]int, error) {
	out := map[string]int{}
	for language, n := range p {
		found := false
		for _, e := range all {
			if language == "" && e.Name == environments.Default || language == e.Language || slices.Contains(e.Aliases, language) {
				if _, twice := out[e.Name]; twice {
					return nil, fmt.Errorf("--pool-size: %q names a language that is there already", language)
				}
				out[e.Name], found = n, true
			}
		}
		if !found {
			return nil, fmt.Errorf("--pool-size: there is no language %q", language)
		}
	}
	return out, nil
}
