// Package manual writes the man pages of a tree of commands: a page for each, from the
// command's own help, usage line and flags.
//
// The format is that of man(7), with few of its macros, so that groff and mandoc read it.
package manual

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"
)

// Page is one man page.
type Page struct {
	Name string // of the file: notebox-serve.1
	Text string
}

// Pages are those of root, whose page is called name, and of all commands below. A command
// without a word of help is for programs, and has none. version and date are in the footer.
func Pages(root *ffcli.Command, name, version string, date time.Time) []Page {
	footer := fmt.Sprintf("%s %s", date.UTC().Format(time.DateOnly), quoted(name+" "+version))
	return pages(root, []string{name}, footer)
}

func pages(c *ffcli.Command, path []string, footer string) []Page {
	all := []Page{{Name: strings.Join(path, "-") + ".1", Text: page(c, path, footer)}}
	for _, s := range c.Subcommands {
		if s.ShortHelp != "" {
			all = append(all, pages(s, append(path[:len(path):len(path)], s.Name), footer)...)
		}
	}
	return all
}

func page(c *ffcli.Command, path []string, footer string) string {
	var b strings.Builder
	title := strings.Join(path, "-")
	fmt.Fprintf(&b, ".TH %s 1 %s \"notebox manual\"\n", quoted(strings.ToUpper(title)), footer)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escaped(title), escaped(c.ShortHelp))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escaped(c.ShortUsage))
	if c.LongHelp != "" {
		b.WriteString(".SH DESCRIPTION\n")
		b.WriteString(prose(c.LongHelp))
	}
	writeCommands(&b, c, title)
	writeFlags(&b, c)
	if len(path) > 1 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escaped(strings.Join(path[:len(path)-1], "-")))
	}
	return b.String()
}

func writeCommands(b *strings.Builder, c *ffcli.Command, title string) {
	heading := ".SH COMMANDS\n"
	for _, s := range c.Subcommands {
		if s.ShortHelp != "" {
			fmt.Fprintf(b, "%s.TP\n.BR %s (1)\n%s\n", heading, escaped(title+"-"+s.Name), escaped(s.ShortHelp))
			heading = ""
		}
	}
}

// defaultAtEnd is how a help says its default if that is no value of the flag.
var defaultAtEnd = regexp.MustCompile(`\(default: .*\)$`)

func writeFlags(b *strings.Builder, c *ffcli.Command) {
	if c.FlagSet == nil {
		return
	}
	heading := ".SH OPTIONS\n"
	c.FlagSet.VisitAll(func(f *flag.Flag) {
		value, help := flag.UnquoteUsage(f)
		fmt.Fprintf(b, "%s.TP\n\\fB\\-\\-%s\\fR", heading, escaped(f.Name))
		heading = ""
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", escaped(value))
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && !defaultAtEnd.MatchString(help) {
			help += " (default: " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "\n%s\n", escaped(help))
	})
}

// prose makes paragraphs of help text. What is indented there stays as it stands.
func prose(text string) string {
	var b strings.Builder
	asItIs := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != asItIs && line != "" {
			asItIs = indented
			if indented {
				b.WriteString(".PP\n.nf\n")
			} else {
				b.WriteString(".fi\n")
			}
		}
		if line == "" {
			if !asItIs {
				b.WriteString(".PP\n")
			}
			continue
		}
		b.WriteString(escaped(line) + "\n")
	}
	if asItIs {
		b.WriteString(".fi\n")
	}
	return strings.ReplaceAll(b.String(), ".PP\n.PP\n", ".PP\n")
}

// escaped is text that roff takes as it stands: no escape, no hyphen that is typeset, and no
// request at the beginning of a line. What is not ASCII is named by its code point.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\n':
			b.WriteByte(' ')
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	if out := b.String(); out != "" && (out[0] == '.' || out[0] == '\'') {
		return `\&` + out
	}
	return b.String()
}

// quoted is one argument of a macro.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(escaped(text), `"`, `\(dq`) + `"`
}
