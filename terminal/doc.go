// Package terminal writes what a stranger has made to a person's terminal.
//
//  1. Defuse takes escape sequences out of a text, and makes the control characters that are
//     left visible. Highlight colours code that was defused.
//  2. Gate lets pass, of a text that somebody has rendered, colours and links that notebox
//     issued.
//  3. Detect finds out by which protocol a terminal shows images (kitty's, iTerm2's or
//     sixel's), and Pictures.Write sends one: as pixels that were decoded and encoded here.
//  4. A Spinner is the last line while something goes on.
package terminal

// Colours and weights (SGR, ECMA-48).
const (
	Plain = "\x1b[0m"
	Bold  = "\x1b[1m"
	Dim   = "\x1b[2m"
	Red   = "\x1b[31m"
	Green = "\x1b[32m"
	Cyan  = "\x1b[36m"
)
