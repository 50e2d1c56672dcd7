package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/peterbourgon/ff/v3/ffcli"
)

// groups are a command's flags as its help shows them. Each set is a group, and its name
// is the heading.
type groups []*flag.FlagSet

// add makes a group of the flags that register defines.
func (g *groups) add(heading string, register func(f *flag.FlagSet)) {
	f := flag.NewFlagSet(heading, flag.ContinueOnError)
	register(f)
	*g = append(*g, f)
}

// into defines the flags of all groups in f.
func (g groups) into(f *flag.FlagSet) groups {
	for _, group := range g {
		group.VisitAll(func(one *flag.Flag) { f.Var(one.Value, one.Name, one.Usage) })
	}
	return g
}

// usage is the help of c: ffcli's, with the flags in groups.
func (g groups) usage(c *ffcli.Command) string {
	withoutFlags := *c
	withoutFlags.FlagSet = new(flag.FlagSet)
	var b strings.Builder
	b.WriteString(ffcli.DefaultUsageFunc(&withoutFlags))
	for _, group := range g {
		fmt.Fprintf(&b, "\n%s\n", group.Name())
		group.SetOutput(&b)
		group.PrintDefaults()
	}
	return b.String()
}
