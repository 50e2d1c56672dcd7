package terminal

import (
	"regexp"
	"slices"
	"strings"
)

// Detect finds out how a terminal is given images: by the variables that terminals
// set, and if those tell nothing by what query returns. query asks the terminal for
// its attributes (DA1) and must not block for long; nil: it is not asked.
func Detect(getenv func(string) string, query func() string) Pictures {
	if term := getenv("TERM"); term == "" || term == "dumb" || term == "linux" {
		return PicturesOff
	}
	if getenv("TMUX") == "" && !strings.HasPrefix(getenv("TERM"), "screen") { // what passes on no other protocol
		switch program := getenv("TERM_PROGRAM"); {
		case getenv("TERM") == "xterm-kitty", getenv("TERM") == "xterm-ghostty", getenv("KITTY_WINDOW_ID") != "", program == "ghostty":
			return PicturesKitty
		case program == "iTerm.app", program == "WezTerm", program == "mintty", getenv("LC_TERMINAL") == "iTerm2":
			return PicturesITerm2
		}
	}
	if query != nil && hasSixel(query()) {
		return PicturesSixel
	}
	return PicturesOff
}

// attributes are an answer to DA1: CSI ? class ; attribute ; … c.
var attributes = regexp.MustCompile(`\x1b\[\?([0-9;]+)c`)

// sixelAttribute is that of terminals with sixel graphics.
const sixelAttribute = "4"

func hasSixel(answer string) bool {
	m := attributes.FindStringSubmatch(answer)
	if m == nil {
		return false
	}
	return slices.Contains(strings.Split(m[1], ";")[1:], sixelAttribute)
}

// IsLight reports whether a terminal says that its ground is light: COLORFGBG names
// its colours by their numbers, the ground last.
func IsLight(getenv func(string) string) bool {
	all := strings.Split(getenv("COLORFGBG"), ";")
	ground := all[len(all)-1]
	return ground == "7" || ground == "15"
}
