package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
)

var (
	// variable is a line of a .env file, as shells and python-dotenv read it.
	variable = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$`)
	// quoted is a value in quotes, and what may follow it.
	quoted = regexp.MustCompile(`^(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?$`)
	// remark is what follows a value that has no quotes.
	remark = regexp.MustCompile(`(?:^|\s+)#.*$`)
)

// readDotenv reads a file of variables, if it is there.
func readDotenv(name string, set func(name, value string) error) error {
	file, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		defer file.Close()
		err = parseDotenv(file, set)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// parseDotenv is a parser for ff of .env files that were written for other programs,
// too: with export before a name, single quotes, remarks, and values that are empty,
// which count as not set. Of a line that is none only the number is told: it may be half
// a secret. The error is of all lines that are wrong; the others are read.
func parseDotenv(r io.Reader, set func(name, value string) error) error {
	var wrong []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || line[0] == '#' {
			continue
		}
		m := variable.FindStringSubmatch(line)
		if m == nil {
			wrong = append(wrong, fmt.Errorf("line %d is not NAME=value", n))
			continue
		}
		if value := dotenvValue(m[2]); value != "" {
			if err := set(m[1], value); err != nil {
				wrong = append(wrong, fmt.Errorf("line %d: %w", n, err))
			}
		}
	}
	return errors.Join(append(wrong, lines.Err())...)
}

func dotenvValue(text string) string {
	m := quoted.FindStringSubmatch(text)
	switch {
	case m == nil:
		return remark.ReplaceAllString(text, "")
	case text[0] == '\'':
		return m[2]
	}
	if value, err := strconv.Unquote(`"` + m[1] + `"`); err == nil {
		return value
	}
	return m[1]
}
