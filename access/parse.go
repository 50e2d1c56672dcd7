package access

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The grammar of a keys file. Blank lines, and lines that begin with #, are passed
// over; words are separated by spaces or tabs.
//
//	line   = key | name secret { secret } { option }
//	key    = one word of visible ASCII              (a plain key, without limits)
//	name   = letter or digit, then up to 63 letters, digits, ".", "_", "-"
//	secret = "sha256:" 64 hex digits                (of the key's SHA-256)
//	option = "runs-at-once=" number
//	       | "requests-per-minute=" number
//	       | "cpu-seconds-per-day=" number
//	       | "environments=" name { "," name }
//	       | "network=" ( "yes" | "no" )
//	       | "sessions=" ( number | "no" )
//	       | "owner=" 16 hex digits                 (whose things are the name's too)
//	number = 1 to 9 digits, without a leading zero

const (
	secretPrefix = "sha256:"

	optionRuns         = "runs-at-once"
	optionRequests     = "requests-per-minute"
	optionCPU          = "cpu-seconds-per-day"
	optionEnvironments = "environments"
	optionNetwork      = "network"
	optionSessions     = "sessions"
	optionOwner        = "owner"
)

const (
	// maxLine bounds a line, in bytes: far above any, so that a wrong file is noticed.
	maxLine = 4096
	// maxFile bounds a keys file, in bytes: some ten thousand callers.
	maxFile = 4 << 20
	// maxSecrets of one caller: the one that was, the one that is, and some to spare.
	maxSecrets = 8
	// maxEnvironments that one line names: more than anybody has.
	maxEnvironments = 64
)

var (
	names   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	numbers = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)
	owners  = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// What can be wrong with a line. None of them quotes it: a part of a key may be in it.
var (
	errKey          = errors.New("a plain key is one word of visible ASCII, a named one NAME sha256:HEX and its limits")
	errNoName       = errors.New("a name must stand before the sha256 of its key")
	errName         = errors.New("a name is up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit")
	errSecret       = errors.New("after sha256: there must be 64 hex digits")
	errSecrets      = fmt.Errorf("there are more than %d secrets", maxSecrets)
	errWord         = errors.New("there is a word that is no limit")
	errTwice        = errors.New("a limit is given twice")
	errRuns         = errors.New(optionRuns + " must be a number from 1 to 999999999")
	errRequests     = errors.New(optionRequests + " must be a number from 1 to 999999999")
	errCPU          = errors.New(optionCPU + " must be a number from 1 to 999999999")
	errEnvironments = errors.New(optionEnvironments + " must be names with commas between")
	errNetwork      = errors.New(optionNetwork + " must be yes or no")
	errSessions     = errors.New(optionSessions + " must be no or a number from 1 to 999999999")
	errOwner        = errors.New(optionOwner + " must be 16 hex digits in small letters")
	errSameKey      = errors.New("an earlier line has the same key")
	errSameName     = errors.New("an earlier line has the same name")
	errSameOwner    = errors.New("an earlier line has the same owner")
	errLong         = fmt.Errorf("the line has more than %d bytes", maxLine)
)

// ErrNoKey is the error of a file without a key: a service that was meant to be
// guarded must not be open, and to lock everybody out is not what an empty file says.
var ErrNoKey = errors.New("there is no key in it")

// LineError says what is wrong with a line of a keys file, without quoting it.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Parse reads a keys file. The error is a *LineError, ErrNoKey, or the reader's.
func Parse(r io.Reader) ([]Entry, error) {
	var all []Entry
	lines := bufio.NewScanner(io.LimitReader(r, maxFile+1))
	lines.Buffer(nil, maxLine)
	seen, size, n := newSeen(), 0, 1
	for ; lines.Scan(); n++ {
		if size += len(lines.Bytes()) + 1; size > maxFile {
			return nil, fmt.Errorf("it has more than %d bytes", maxFile)
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := ParseLine(line)
		if err == nil {
			err = seen.add(e)
		}
		if errors.Is(err, errSamePlain) {
			continue
		}
		if err != nil {
			return nil, &LineError{n, err}
		}
		all = append(all, e)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &LineError{n, errLong}
	} else if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, ErrNoKey
	}
	return all, nil
}

// ParseLine reads one line that is neither blank nor a comment.
func ParseLine(line string) (Entry, error) {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	switch {
	case len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return !IsKey(w) }):
		return Entry{}, errKey
	case strings.HasPrefix(words[0], secretPrefix):
		return Entry{}, errNoName
	case len(words) == 1:
		return PlainEntry(words[0]), nil
	case !strings.HasPrefix(words[1], secretPrefix):
		return Entry{}, errKey
	}
	if err := CheckName(words[0]); err != nil {
		return Entry{}, err
	}
	e := Entry{Name: words[0], Owner: ownerOfName(words[0])}
	given := map[string]bool{}
	for _, word := range words[1:] {
		if digits, ok := strings.CutPrefix(word, secretPrefix); ok {
			if err := e.addSecret(digits); err != nil {
				return Entry{}, err
			}
			continue
		}
		option, value, _ := strings.Cut(word, "=")
		if given[option] {
			return Entry{}, errTwice
		}
		given[option] = true
		if err := e.set(option, value); err != nil {
			return Entry{}, err
		}
	}
	return e, nil
}

// ParseLimits reads limits alone, as they stand in a line.
func ParseLimits(words []string) (Limits, error) {
	e, err := ParseLine(strings.Join(append([]string{"name", Secret{}.String()}, words...), " "))
	if err == nil && (len(e.Secrets) != 1 || e.Owner != ownerOfName("name")) {
		err = errWord
	}
	return e.Limits, err
}

func (e *Entry) addSecret(digits string) error {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(Secret{}) {
		return errSecret
	}
	if len(e.Secrets) == maxSecrets {
		return errSecrets
	}
	if slices.Contains(e.Secrets, Secret(raw)) {
		return errSameKey
	}
	e.Secrets = append(e.Secrets, Secret(raw))
	return nil
}

func (e *Entry) set(option, value string) (err error) {
	l := &e.Limits
	switch option {
	case optionRuns:
		l.RunsAtOnce, err = number(value, errRuns)
	case optionRequests:
		l.RequestsPerMinute, err = number(value, errRequests)
	case optionCPU:
		var n int
		n, err = number(value, errCPU)
		l.CPUPerDay = time.Duration(n) * time.Second
	case optionEnvironments:
		l.Environments = strings.Split(value, ",")
		if len(l.Environments) > maxEnvironments ||
			slices.ContainsFunc(l.Environments, func(name string) bool { return !names.MatchString(name) }) {
			err = errEnvironments
		}
	case optionNetwork:
		if l.NoNetwork = value == "no"; value != "no" && value != "yes" {
			err = errNetwork
		}
	case optionSessions:
		if value == "no" {
			l.Sessions = None
			return nil
		}
		l.Sessions, err = number(value, errSessions)
	case optionOwner:
		if e.Owner = value; !owners.MatchString(value) {
			err = errOwner
		}
	default:
		err = errWord
	}
	return err
}

func number(text string, otherwise error) (int, error) {
	if !numbers.MatchString(text) {
		return 0, otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, otherwise
	}
	return n, nil
}
