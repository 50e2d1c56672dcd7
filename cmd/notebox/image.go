package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
)

// imageCommand prints which images belong to this program, for the scripts that
// build them.
func imageCommand() *ffcli.Command {
	f := flag.NewFlagSet("notebox image", flag.ContinueOnError)
	dir := f.String("environments-dir", "", "Know the environments in this `folder` too.")
	base := f.Bool("base", false, "Print the image that all others are made from.")
	list := f.Bool("list", false, "Print the name of each environment that has an image of its own.")
	return &ffcli.Command{
		Name:       "image",
		ShortUsage: "notebox image [flags] [environment]",
		ShortHelp:  "print the reference of a sandbox image",
		FlagSet:    f,
		Exec: func(_ context.Context, args []string) error {
			all, err := environments.Load(*dir)
			if err != nil {
				return err
			}
			switch {
			case *base:
				return printBase()
			case *list:
				return printNames(all)
			case len(args) > 1:
				return errors.New("one environment at a time")
			}
			name := environments.Default
			if len(args) > 0 {
				name = args[0]
			}
			return printImage(all, name)
		},
	}
}

func printBase() error {
	ref, err := environments.BaseImage()
	if err == nil {
		fmt.Println(ref)
	}
	return err
}

func printNames(all []environments.Environment) error {
	for _, e := range all {
		if e.ImageOf == "" {
			fmt.Println(e.Name)
		}
	}
	return nil
}

func printImage(all []environments.Environment, name string) error {
	var known []string
	for _, e := range all {
		if e.Name == name {
			fmt.Println(e.Image)
			return nil
		}
		known = append(known, e.Name)
	}
	return fmt.Errorf("no environment %q; there is: %s", name, strings.Join(known, ", "))
}
