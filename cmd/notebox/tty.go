package main

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"notebox/terminal"
)

// usualColumns is a terminal's width if it does not tell.
const usualColumns = 80

func columnsOf(out *os.File) int {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil || columns <= 0 {
		return usualColumns
	}
	return columns
}

// plainTerminal reports whether a terminal is to have text alone (https://no-color.org).
func plainTerminal() bool { return os.Getenv("TERM") == "dumb" || os.Getenv("NO_COLOR") != "" }

// pictures is how images are shown on out, as the flag -images says. The terminal itself is
// asked only if both ends are one.
func pictures(way string, in, out *os.File, plain bool) (terminal.Pictures, error) {
	switch p := terminal.Pictures(way); p {
	case "auto":
	case terminal.PicturesOff, terminal.PicturesKitty, terminal.PicturesITerm2, terminal.PicturesSixel:
		return p, nil
	default:
		return "", fmt.Errorf("-images is auto, kitty, iterm2, sixel or off, not %q", way)
	}
	if plain || !term.IsTerminal(int(out.Fd())) {
		return terminal.PicturesOff, nil
	}
	query := func() string { return terminal.Query(in) }
	if !term.IsTerminal(int(in.Fd())) {
		query = nil
	}
	return terminal.Detect(os.Getenv, query), nil
}
