package main

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/term"

	"notebox/terminal"
)

// usualColumns is a terminal's width if it does not tell.
const usualColumns = 80

// interrupts has Ctrl-C be about what is under way, and not about the program, until stop is called.
func interrupts() (all <-chan os.Signal, stop func()) {
	signal.Reset(os.Interrupt)
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}

// columnsOf is the width of a terminal.
func columnsOf(out *os.File) int {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil || columns <= 0 {
		return usualColumns
	}
	return columns
}

// plainTerminal reports whether a terminal is to have text alone (https://no-color.org).
func plainTerminal() bool { return os.Getenv("TERM") == "dumb" || os.Getenv("NO_COLOR") != "" }

// auto is that the terminal is asked how it shows images.
const auto = "auto"

// isWay reports whether the flag -images is one.
func isWay(way string) bool {
	return way == auto || slices.Contains([]terminal.Pictures{terminal.PicturesOff, terminal.PicturesKitty, terminal.PicturesITerm2, terminal.PicturesSixel}, terminal.Pictures(way))
}

// pictures is how images are shown on out, as the flag -images says. The terminal itself is
// asked only if both ends are one.
func pictures(way string, in, out *os.File, plain bool) terminal.Pictures {
	switch {
	case way != auto:
		return terminal.Pictures(way)
	case plain || !term.IsTerminal(int(out.Fd())):
		return terminal.PicturesOff
	}
	query := func() string { return terminal.Query(in) }
	if !term.IsTerminal(int(in.Fd())) {
		query = nil
	}
	return terminal.Detect(os.Getenv, query)
}
