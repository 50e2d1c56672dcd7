package problem

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsRepeatedOfACaller(t *testing.T) {
	long := strings.Repeat("é", MaxQuoted)
	cut := strings.Repeat("é", MaxQuoted/2) + "…"
	for _, c := range []struct{ desc, given, quoted, printable, cut string }{
		{"a name", "files", `"files"`, "files", "files"},
		{"nothing", "", `""`, `""`, ""},
		{"what looks like more than a name", "a.b[0] c", `"a.b[0] c"`, `"a.b[0] c"`, "a.b[0] c"},
		{"what is not printed", "a\x1b\n\"", `"a\x1b\n\""`, `"a\x1b\n\""`, "a\x1b\n\""},
		{"what is too long, cut between characters", long, `"` + cut + `"`, `"` + cut + `"`, cut},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.quoted, Quote(c.given))
			require.Equal(t, c.printable, Printable(c.given))
			require.Equal(t, c.cut, Cut(c.given))
		})
	}
	require.Equal(t, "a b", OneLine(" a\n\tb\x1b[31m"))
}

func TestWhatIsToldAndWhatIsLogged(t *testing.T) {
	p := &Error{Status: StatusUnfit, Field: "files[2].name", Text: "is too long", Cause: io.ErrUnexpectedEOF}
	require.Equal(t, "files[2].name: is too long", p.Detail())
	require.Equal(t, "files[2].name: is too long: unexpected EOF", p.Error())
	require.ErrorIs(t, p, io.ErrUnexpectedEOF)
	require.Equal(t, "there is nothing at this address", NotFound().Error())
	for field, is := range map[string]bool{"dependencies": true, "dependencies[3]": true, "dependencies.x": false, "code": false, "": false} {
		require.Equal(t, is, Unfit(field, "x").OfPackages(), field)
	}
}

// TestKnown: a stored problem of another status is no answer.
func TestKnown(t *testing.T) {
	for _, s := range []Status{400, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504} {
		require.True(t, s.Known(), "%d", s)
	}
	for _, s := range []Status{0, 200, 418, StatusClientGone, 1000} {
		require.False(t, s.Known(), "%d", s)
	}
}

// TestPanicsDoNotQuoteTheCaller: what panicked may hold a caller's text, the language's own
// errors do not.
func TestPanicsDoNotQuoteTheCaller(t *testing.T) {
	told := func(do func()) (p *Error) {
		defer func() { p = Panicked(recover()) }()
		do()
		return nil
	}
	p := told(func() { panic("print('secret')") })
	require.Equal(t, StatusFailed, p.Status)
	require.NotContains(t, p.Detail(), "panic")
	require.Contains(t, p.Error(), "a value of type string")
	require.Contains(t, p.Error(), "problem_test.go", "the stack is for the log")
	require.NotContains(t, p.Error(), "secret")
	require.Contains(t, told(func() { _ = []int{}[len(p.Field)] }).Error(), "index out of range")
}

func TestRedacted(t *testing.T) {
	whole := fmt.Errorf("put runs/secret.csv: %w", errors.Join(io.EOF, fmt.Errorf("disk: %w", io.ErrShortWrite)))
	require.Equal(t, io.ErrShortWrite, Leaf(whole), "the last of several")
	require.Equal(t, io.EOF, Leaf(io.EOF))
	err := &Redacted{Text: "short write", Whole: whole}
	require.EqualError(t, err, "short write")
	require.ErrorIs(t, err, io.EOF)
}
