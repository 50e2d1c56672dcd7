// Package completion says what may follow on a command line that is not finished, for the
// shells that ask at each press of Tab.
//
//  1. Script is what a shell reads once. It asks the program at each Tab, by its hidden
//     subcommand complete, with the words so far.
//  2. Of walks the tree of commands along these words, and finds what the last one may
//     become: a subcommand, a flag, a flag's value or an argument.
//  3. Write prints the answer: its kind in the first line, then a word a line, and after a
//     tab what the word means.
//
// All of it comes from the commands' own flag sets and usage lines, so nothing has to be
// kept in step.
package completion

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/peterbourgon/ff/v3/ffcli"
)

// Kind is what the words of an Answer are.
type Kind string

// The kinds of answers.
const (
	Words   Kind = "words"  // those of the answer
	Files   Kind = "file"   // the shell knows them
	Folders Kind = "folder" // the shell knows them
)

// Item is one word, and what it means.
type Item struct{ Word, Help string }

// Answer is what the last word may become.
type Answer struct {
	Kind  Kind
	Items []Item
}

// Values are what a flag may be, if that is known; nil: anything.
type Values func(flag string) []string

// Of returns what the last of words may become, which may be empty. words are those behind
// the program's name.
func Of(root *ffcli.Command, words []string, values Values) Answer {
	words = joined(words)
	if len(words) == 0 {
		words = []string{""}
	}
	before, current := words[:len(words)-1], words[len(words)-1]
	command, open, args := walk(root, before)
	switch name, value, assigned := strings.Cut(strings.TrimLeft(current, "-"), "="); {
	case open != nil:
		return valueOf(open, "", current, values)
	case strings.HasPrefix(current, "-") && assigned:
		f := lookup(command, name)
		if f == nil {
			return Answer{Kind: Words}
		}
		return valueOf(f, current[:len(current)-len(value)], value, values)
	case strings.HasPrefix(current, "-"):
		return flagsOf(command, current)
	}
	if args == 0 && len(command.Subcommands) > 0 {
		return subcommandsOf(command, current)
	}
	return argumentsOf(command, current)
}

// Write prints the answer for a script.
func (a Answer) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, a.Kind)
	for _, item := range a.Items {
		fmt.Fprintf(&b, "%s\t%s\n", item.Word, item.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// joined undoes what bash does to --flag=value, which are three words there.
func joined(words []string) (out []string) {
	for i := 0; i < len(words); i++ {
		if last := len(out) - 1; words[i] == "=" && last >= 0 && strings.HasPrefix(out[last], "-") {
			out[last] += "="
			if i+1 < len(words) {
				i++
				out[last] += words[i]
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

// walk returns the command that words lead to, the flag whose value is to follow, and how
// many arguments there are already.
func walk(c *ffcli.Command, words []string) (command *ffcli.Command, open *flag.Flag, args int) {
	for _, word := range words {
		switch {
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-") && word != "-":
			if f := lookup(c, strings.TrimLeft(word, "-")); f != nil && !isBool(f) {
				open = f
			}
		case args == 0 && subcommand(c, word) != nil:
			c = subcommand(c, word)
		default:
			args++
		}
	}
	return c, open, args
}

func subcommand(c *ffcli.Command, name string) *ffcli.Command {
	i := slices.IndexFunc(c.Subcommands, func(s *ffcli.Command) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil
	}
	return c.Subcommands[i]
}

func lookup(c *ffcli.Command, name string) *flag.Flag {
	if c.FlagSet == nil {
		return nil
	}
	return c.FlagSet.Lookup(name)
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// subcommandsOf leaves out those without a word of help, which are for programs.
func subcommandsOf(c *ffcli.Command, current string) Answer {
	a := Answer{Kind: Words}
	for _, s := range c.Subcommands {
		if s.ShortHelp != "" && strings.HasPrefix(s.Name, current) {
			a.Items = append(a.Items, Item{s.Name, s.ShortHelp})
		}
	}
	return a
}

// flagsOf has two hyphens, as the documents do, unless one and a letter are there.
func flagsOf(c *ffcli.Command, current string) Answer {
	a := Answer{Kind: Words}
	hyphens := "--"
	if len(current) > 1 && current[1] != '-' {
		hyphens = "-"
	}
	if c.FlagSet != nil {
		c.FlagSet.VisitAll(func(f *flag.Flag) {
			if word := hyphens + f.Name; strings.HasPrefix(word, current) {
				_, help := flag.UnquoteUsage(f)
				a.Items = append(a.Items, Item{word, firstSentence(help)})
			}
		})
	}
	if word := hyphens + "help"; strings.HasPrefix(word, current) {
		a.Items = append(a.Items, Item{word, "Show the help."})
	}
	return a
}

// sentenceEnd is a dot, colon or semicolon behind which a new thought begins.
var sentenceEnd = regexp.MustCompile(`[.:;,]? \(default|[.:;] `)

func firstSentence(text string) string {
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return strings.TrimSuffix(strings.ReplaceAll(text, "\n", " "), ".") + "."
}

// valueOf completes the value of a flag; before is what stands in the same word before it.
func valueOf(f *flag.Flag, before, current string, values Values) Answer {
	name, _ := flag.UnquoteUsage(f)
	if kind := kindOf(name); kind != Words {
		return Answer{Kind: kind}
	}
	known := values(f.Name)
	if isBool(f) {
		known = []string{"true", "false"}
	}
	a := Answer{Kind: Words}
	for _, value := range known {
		if strings.HasPrefix(value, current) {
			a.Items = append(a.Items, Item{Word: before + value})
		}
	}
	return a
}

// kindOf tells files and folders by the name of a value in the help.
func kindOf(name string) Kind {
	switch strings.ToLower(name) {
	case "file", "path":
		return Files
	case "folder", "dir":
		return Folders
	}
	return Words
}

var (
	// alternatives are words of a usage line of which one is meant: bash|zsh|fish.
	alternatives = regexp.MustCompile(`(?:^|[ \[])([a-z]+(?:\|[a-z]+)+)`)
	// file is a word of a usage line that stands for a file.
	file = regexp.MustCompile(`\b(FILE|PATH|TAR)\b`)
)

// argumentsOf are those that the command's usage line has.
func argumentsOf(c *ffcli.Command, current string) Answer {
	a := Answer{Kind: Words}
	if found := alternatives.FindStringSubmatch(c.ShortUsage); found != nil {
		for word := range strings.SplitSeq(found[1], "|") {
			if strings.HasPrefix(word, current) {
				a.Items = append(a.Items, Item{Word: word})
			}
		}
		return a
	}
	if file.MatchString(c.ShortUsage) {
		a.Kind = Files
	}
	return a
}
