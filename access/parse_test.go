package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	hexOne = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	hexTwo = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		desc, content string
		callers       int
		line          int
		err           error
	}{
		{desc: "plain keys", content: "# keys\n\n  one \r\ntwo\n#three", callers: 2},
		{desc: "a plain key twice", content: "one\none\n", callers: 1},
		{desc: "a plain key with = and : in it", content: "a=b:c", callers: 1},
		{desc: "a name", content: "alice " + hexOne, callers: 1},
		{desc: "tabs, a carriage return", content: "alice\t" + hexOne + "\truns-at-once=2\r\n", callers: 1},
		{desc: "digits in capitals", content: "alice " + strings.ToUpper(hexOne[7:]) + "", err: errKey, line: 1},
		{desc: "two secrets of one name", content: "alice " + hexOne + " " + hexTwo, callers: 1},
		{desc: "names and plain keys", content: "alice " + hexOne + "\none\nbob " + hexTwo + " network=no", callers: 3},
		{desc: "nothing", content: "", err: ErrNoKey},
		{desc: "comments alone", content: "# one\n\n", err: ErrNoKey},
		{desc: "two words", content: "one\ntwo # of Bob", err: errKey, line: 2},
		{desc: "not ASCII", content: "schlüssel", err: errKey, line: 1},
		{desc: "a NUL", content: "one\x00", err: errKey, line: 1},
		{desc: "not UTF-8", content: "one\xff", err: errKey, line: 1},
		{desc: "no name", content: hexOne, err: errNoName, line: 1},
		{desc: "no name before limits", content: hexOne + " runs-at-once=2", err: errNoName, line: 1},
		{desc: "a name that is none", content: "-alice " + hexOne, err: errName, line: 1},
		{desc: "a long name", content: strings.Repeat("a", 65) + " " + hexOne, err: errName, line: 1},
		{desc: "a short hash", content: "alice sha256:11", err: errSecret, line: 1},
		{desc: "a hash of other digits", content: "alice " + hexOne[:70] + "g", err: errSecret, line: 1},
		{desc: "a secret twice", content: "alice " + hexOne + " " + hexOne, err: errSameKey, line: 1},
		{desc: "too many secrets", content: "alice" + manySecrets(maxSecrets+1), err: errSecrets, line: 1},
		{desc: "limits first", content: "alice runs-at-once=2 " + hexOne, err: errKey, line: 1},
		{desc: "an unknown limit", content: "alice " + hexOne + " runs=2", err: errWord, line: 1},
		{desc: "a word", content: "alice " + hexOne + " two", err: errWord, line: 1},
		{desc: "a limit twice", content: "alice " + hexOne + " sessions=2 sessions=2", err: errTwice, line: 1},
		{desc: "runs: none", content: "alice " + hexOne + " runs-at-once=0", err: errRuns, line: 1},
		{desc: "runs: signed", content: "alice " + hexOne + " runs-at-once=+1", err: errRuns, line: 1},
		{desc: "requests: a fraction", content: "alice " + hexOne + " requests-per-minute=1.5", err: errRequests, line: 1},
		{desc: "CPU: too large", content: "alice " + hexOne + " cpu-seconds-per-day=1000000000", err: errCPU, line: 1},
		{desc: "environments: none", content: "alice " + hexOne + " environments=", err: errEnvironments, line: 1},
		{desc: "environments: an empty one", content: "alice " + hexOne + " environments=python,,r", err: errEnvironments, line: 1},
		{desc: "network: maybe", content: "alice " + hexOne + " network=maybe", err: errNetwork, line: 1},
		{desc: "sessions: yes", content: "alice " + hexOne + " sessions=yes", err: errSessions, line: 1},
		{desc: "owner: short", content: "alice " + hexOne + " owner=0123", err: errOwner, line: 1},
		{desc: "the same name", content: "alice " + hexOne + "\n\nalice " + hexTwo, err: errSameName, line: 3},
		{desc: "the same key", content: "alice " + hexOne + "\nbob " + hexOne, err: errSameKey, line: 2},
		{desc: "the same key, plain and hashed", content: "one\nalice " + SecretOf("one").String(), err: errSameKey, line: 2},
		{desc: "the same owner", content: "one\nalice " + hexOne + " owner=" + SecretOf("one").Owner(), err: errSameOwner, line: 2},
		{desc: "a long line", content: "one\n" + strings.Repeat("x", maxLine+1), err: errLong, line: 2},
	} {
		t.Run(c.desc, func(t *testing.T) {
			all, err := Parse(strings.NewReader(c.content))
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				var at *LineError
				require.Equal(t, c.line > 0, errors.As(err, &at))
				if at != nil {
					require.Equal(t, c.line, at.Line)
				}
				return
			}
			require.NoError(t, err)
			require.Len(t, all, c.callers)
		})
	}
	_, err := Parse(strings.NewReader(strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", maxFile/1000)))
	require.ErrorContains(t, err, "it has more than 4194304 bytes")
}

func manySecrets(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" " + Secret{byte(i)}.String())
	}
	return b.String()
}

func TestParseLine(t *testing.T) {
	line := "alice " + hexOne + " " + hexTwo + " owner=0123456789abcdef runs-at-once=2 requests-per-minute=60 cpu-seconds-per-day=3600 environments=python,r network=no sessions=5"
	e, err := ParseLine(line)
	require.NoError(t, err)
	require.Equal(t, "alice", e.Name)
	require.Equal(t, "0123456789abcdef", e.Owner)
	require.Len(t, e.Secrets, 2)
	require.Equal(t, Limits{
		RunsAtOnce: 2, RequestsPerMinute: 60, CPUPerDay: time.Hour,
		Environments: []string{"python", "r"}, NoNetwork: true, Sessions: 5,
	}, e.Limits)
	require.Equal(t, line, e.String())

	e, err = ParseLine("bob " + hexOne + " network=yes sessions=no")
	require.NoError(t, err)
	require.Equal(t, Limits{Sessions: None}, e.Limits)
	require.Equal(t, "bob "+hexOne+" sessions=no", e.String())

	e, err = ParseLine("word")
	require.NoError(t, err)
	require.Equal(t, PlainEntry("word"), e)
	require.Empty(t, e.String(), "the key is not known any more")
}

func TestParseLimits(t *testing.T) {
	l, err := ParseLimits([]string{"runs-at-once=1", "network=no"})
	require.NoError(t, err)
	require.Equal(t, Limits{RunsAtOnce: 1, NoNetwork: true}, l)
	l, err = ParseLimits(nil)
	require.NoError(t, err)
	require.Equal(t, Limits{}, l)
	for _, word := range []string{hexOne, "owner=0123456789abcdef", "runs-at-once", "x"} {
		_, err = ParseLimits([]string{word})
		require.Error(t, err, word)
	}
}

func TestOwners(t *testing.T) {
	// As services before named lines made it: what they stored is under it.
	require.Equal(t, "54432db7fae62b63", PlainEntry("key-a").Owner)
	require.NotEqual(t, PlainEntry("key-a").Owner, PlainEntry("key-b").Owner)
	one, err := ParseLine("alice " + hexOne)
	require.NoError(t, err)
	two, err := ParseLine("alice " + hexTwo)
	require.NoError(t, err)
	require.Equal(t, one.Owner, two.Owner, "a new key under the same name")
	require.Regexp(t, owners, one.Owner)
	require.NotEqual(t, one.Owner, PlainEntry("alice").Owner)
}

// FuzzParse: whatever is in a file, nothing of it is in the error, and what is taken
// can be written down and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"one\ntwo\n", "# keys\n\nalice " + hexOne + "\n", "alice " + hexOne + " " + hexTwo + " runs-at-once=2 network=no\r\n",
		"alice\t" + hexOne + " requests-per-minute=60 cpu-seconds-per-day=3600 environments=python,r sessions=no owner=0123456789abcdef",
		"alice " + hexOne + "\nbob " + hexOne, hexOne, "a b", "\xff\x00", strings.Repeat("x", maxLine), "alice sha256:zz", "a " + hexOne + " x=y",
	} {
		f.Add([]byte(seed))
	}
	known := []error{
		errKey, errNoName, errName, errSecret, errSecrets, errWord, errTwice, errRuns, errRequests, errCPU, errEnvironments,
		errNetwork, errSessions, errOwner, errSameKey, errSameName, errSameOwner, errLong,
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := Parse(strings.NewReader(string(content)))
		if err != nil {
			var at *LineError
			if errors.As(err, &at) {
				require.Contains(t, known, at.Err)
				require.LessOrEqual(t, at.Line, strings.Count(string(content), "\n")+1)
				return
			}
			require.Equal(t, ErrNoKey, err)
			return
		}
		require.NotEmpty(t, all)
		var lines []string
		var named []Entry
		for _, e := range all {
			require.NotEmpty(t, e.Secrets)
			require.Regexp(t, owners, e.Owner)
			if e.Name == "" {
				require.Equal(t, Limits{}, e.Limits)
				continue
			}
			named = append(named, e)
			lines = append(lines, e.String())
		}
		if len(named) > 0 {
			again, err := Parse(strings.NewReader(strings.Join(lines, "\n")))
			require.NoError(t, err)
			require.Equal(t, named, again)
		}
	})
}
