package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/peterbourgon/ff/v3/ffcli"
)

const configHelp = `Prints each setting of notebox serve: its value, and where that comes from. Called with
the flags, variables and files that serve gets, it says what serve would do.

A value in parentheses is found out when the service starts. Passwords in URLs are not
shown.`

// Where a value comes from, besides the file dotenv.
const (
	fromFlag     = "flag"
	fromVariable = "variable"
	fromConfig   = "config file"
	fromDefault  = "default"
)

// setting is one flag of serve, as it is in force.
type setting struct {
	Name     string `json:"name"`     // of the flag
	Variable string `json:"variable"` // that sets it too
	Value    string `json:"value"`
	From     string `json:"from"`
	// Later is that Value is the rule by which the service finds the value at its start.
	Later bool `json:"later,omitempty"`
}

func configCommand() *ffcli.Command {
	var s settings
	flags := flag.NewFlagSet("notebox config", flag.ContinueOnError)
	s.register(flags)
	asJSON := flags.Bool("json", false, "Print a JSON array.")
	return &ffcli.Command{
		Name:       "config",
		ShortUsage: "notebox config [--json] [flags of serve]",
		ShortHelp:  "print the settings in force, and where each comes from",
		LongHelp:   configHelp,
		UsageFunc:  withoutFlags,
		FlagSet:    flags,
		Exec: func(_ context.Context, args []string) error {
			if err := flagsAlone(flags, args); err != nil {
				return err
			}
			all, err := inForce(flags, &s)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(os.Stdout, all)
			}
			return writeSettings(os.Stdout, all)
		},
	}
}

// withoutFlags is the usage of a command that takes all flags of serve.
func withoutFlags(c *ffcli.Command) string {
	short := *c
	short.FlagSet = new(flag.FlagSet)
	if f := c.FlagSet.Lookup("json"); f != nil {
		short.FlagSet.Var(f.Value, f.Name, f.Usage)
	}
	return ffcli.DefaultUsageFunc(&short) + "\nnotebox serve -h lists the flags of serve.\n"
}

// inForce is each setting of serve.
func inForce(flags *flag.FlagSet, s *settings) ([]setting, error) {
	from, bad := readEach(flags, s)
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	var own flag.FlagSet
	new(settings).register(&own)
	var all []setting
	own.VisitAll(func(f *flag.Flag) {
		shown, _ := hideSecrets(flags.Lookup(f.Name).Value.String())
		one := setting{Name: f.Name, Variable: variableOf(f.Name), Value: shown, From: from[f.Name]}
		if one.From == "" {
			one.From = fromDefault
			one.Value, one.Later = defaultOf(f, one.Value)
		}
		all = append(all, one)
	})
	return all, nil
}

// readEach reads what serve reads, in its order, and says where the value of each flag comes
// from. It goes on where serve would end, and returns all that is wrong.
func readEach(flags *flag.FlagSet, s *settings) (from map[string]string, bad []error) {
	from = map[string]string{}
	note := func(source string, err error) {
		flags.Visit(func(f *flag.Flag) {
			if from[f.Name] == "" {
				from[f.Name] = source
			}
		})
		if err != nil {
			bad = append(bad, err)
		}
	}
	note(fromFlag, nil)
	set := func(f *flag.Flag, name, value string) error {
		err := flags.Set(f.Name, value)
		if err == nil {
			return nil
		}
		_ = flags.Set(f.Name, f.DefValue) // which Set has lost
		shown, _ := hideSecrets(value)
		return fmt.Errorf("%s=%s: %w", name, shown, err)
	}
	byVariable := map[string]*flag.Flag{}
	flags.VisitAll(func(f *flag.Flag) {
		variable := variableOf(f.Name)
		byVariable[variable] = f
		if value := os.Getenv(variable); value != "" && from[f.Name] == "" {
			if err := set(f, "variable "+variable, value); err != nil {
				bad = append(bad, err)
			}
		}
	})
	note(fromVariable, nil)
	note(dotenv, readDotenv(dotenv, func(name, value string) error {
		f := cmp.Or(flags.Lookup(name), byVariable[name])
		if f == nil || from[f.Name] != "" { // another program's, or set otherwise
			return nil
		}
		return set(f, name, value)
	}))
	note(fromConfig, readConfig(flags, s.config))
	flags.VisitAll(func(f *flag.Flag) {
		if from[f.Name] == "" && f.Value.String() != f.DefValue { // an invalid value of the file
			_ = f.Value.Set(f.DefValue)
		}
	})
	return from, bad
}

// ruleAtEnd is how a flag's help says a default that depends on the machine.
var ruleAtEnd = regexp.MustCompile(`\(default: (.*)\)$`)

// defaultOf is a default as people read it: that of a machine's, which is in the help, where
// the flag itself has nothing to say.
func defaultOf(f *flag.Flag, value string) (text string, later bool) {
	rule := ruleAtEnd.FindStringSubmatch(f.Usage)
	if rule != nil && slices.Contains([]string{"", "0", strconv.Itoa(notSet)}, value) {
		return rule[1], true
	}
	return value, false
}

// writeSettings prints a table.
func writeSettings(w io.Writer, all []setting) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM")
	for _, one := range all {
		value, from := one.Value, one.From
		if one.Later {
			value = "(" + value + ")"
		}
		if from == fromVariable || from == dotenv {
			from += " " + one.Variable
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", one.Name, strings.ReplaceAll(value, "\n", " "), from)
	}
	return table.Flush()
}
