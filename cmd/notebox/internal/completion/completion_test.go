package completion_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/peterbourgon/ff/v3/ffcli"
	"github.com/stretchr/testify/require"

	"notebox/cmd/notebox/internal/completion"
)

// tree is a program with a flag of each kind.
func tree() *ffcli.Command {
	f := flag.NewFlagSet("paint", flag.ContinueOnError)
	f.String("colour", "", "Paint in this `name`. (default: white)")
	f.String("from", "", "Read this `file`.")
	f.String("to", "", "Write into this `folder`; it is made.")
	f.Bool("twice", false, "Paint twice.")
	return &ffcli.Command{Subcommands: []*ffcli.Command{
		{Name: "paint", ShortUsage: "art paint [flags] FILE", ShortHelp: "paint a file", FlagSet: f},
		{Name: "wall", ShortHelp: "of walls", Subcommands: []*ffcli.Command{
			{Name: "build", ShortUsage: "art wall build brick|wood", ShortHelp: "build one"},
			{Name: "break", ShortUsage: "art wall break", ShortHelp: "break one"},
		}},
		{Name: "inner"},
	}}
}

func colours(name string) []string {
	if name == "colour" {
		return []string{"red", "rose", "blue"}
	}
	return nil
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string // words with a bar between them
		kind completion.Kind
		want string
	}{
		{"", completion.Words, "paint wall"},
		{"pa", completion.Words, "paint"},
		{"inn", completion.Words, ""},
		{"wall|b", completion.Words, "build break"},
		{"wall|build|", completion.Words, "brick wood"},
		{"wall|break|", completion.Words, ""},
		{"paint|-", completion.Words, "--colour --from --to --twice --help"},
		{"paint|--t", completion.Words, "--to --twice"},
		{"paint|-t", completion.Words, "-to -twice"},
		{"paint|--colour|r", completion.Words, "red rose"},
		{"paint|--colour=b", completion.Words, "--colour=blue"},
		{"paint|--colour|=|b", completion.Words, "--colour=blue"}, // as bash breaks it
		{"paint|--colour|=", completion.Words, "--colour=red --colour=rose --colour=blue"},
		{"paint|--none=b", completion.Words, ""},
		{"paint|--twice=", completion.Words, "--twice=true --twice=false"},
		{"paint|--twice|--f", completion.Words, "--from"},
		{"paint|--from|", completion.Files, ""},
		{"paint|--from=x", completion.Files, ""},
		{"paint|--to|", completion.Folders, ""},
		{"paint|--to|wall|", completion.Files, ""},
		{"paint|", completion.Files, ""},
	} {
		a := completion.Of(tree(), strings.Split(c.line, "|"), colours)
		var words []string
		for _, item := range a.Items {
			words = append(words, item.Word)
		}
		require.Equal(t, c.kind, a.Kind, c.line)
		require.Equal(t, c.want, strings.Join(words, " "), c.line)
	}
}

func ExampleAnswer_Write() {
	_ = completion.Of(tree(), []string{"paint", "--t"}, colours).Write(os.Stdout)
	// Output:
	// words
	// --to	Write into this folder.
	// --twice	Paint twice.
}

func TestScript(t *testing.T) {
	t.Parallel()
	for _, shell := range completion.Shells() {
		script, err := completion.Script(shell)
		require.NoError(t, err)
		require.Contains(t, script, " complete -- ")
	}
	_, err := completion.Script("ksh")
	require.EqualError(t, err, `no completion for "ksh"; there is: bash, zsh, fish`)
}

// FuzzOf: whatever is typed, the answer is of lines with one tab each.
func FuzzOf(f *testing.F) {
	f.Add("paint|--colour|=|b")
	f.Add("=|-|--|---=x")
	f.Fuzz(func(t *testing.T, line string) {
		var b bytes.Buffer
		require.NoError(t, completion.Of(tree(), strings.Split(line, "|"), colours).Write(&b))
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		require.Contains(t, []string{"words", "file", "folder"}, lines[0])
		for _, l := range lines[1:] {
			require.Equal(t, 1, strings.Count(l, "\t"), fmt.Sprintf("%q", l))
		}
	})
}
