package tool

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The budget of a message's text, in tokens.
const (
	DefaultBudget = 4_000   // a page or three of output, which a model reads with care
	MinBudget     = 100     // the hint and a traceback's last line
	MaxBudget     = 200_000 // what large models take at all
)

// asciiPerToken is how many ASCII characters count as one token. In English prose it
// is more than four; in tables of numbers, which are what code prints, less than three.
const asciiPerToken = 3

// Tokens estimates how many tokens text has, for any model's tokenizer: one for every
// three ASCII characters, and one for every other character. That is more than it is for
// prose, and about right for numbers and for Chinese.
func Tokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+asciiPerToken-1)/asciiPerToken + other
}

// leftOut is Cut's mark.
const leftOut = "[… %s characters left out …]"

// cutMark is what a mark may cost, in tokens.
const cutMark = 20

// Cut shortens text to so many tokens by Tokens, at least to MinBudget: two fifths at
// the beginning and three fifths at the end stay, where results and errors are, and
// what is left out between is counted. It cuts at line breaks if they are near.
func Cut(text string, tokens int) string {
	tokens = max(tokens, MinBudget)
	if Tokens(text) <= tokens {
		return text
	}
	room := tokens - cutMark
	head := prefix(text, room*2/5)
	tail := suffix(text[head:], room-room*2/5)
	left := utf8.RuneCountInString(text[head : len(text)-tail])
	mark := fmt.Sprintf(leftOut, thousands(left))
	return text[:head] + newline(text[:head], true) + mark + newline(text[len(text)-tail:], false) + text[len(text)-tail:]
}

// newline is one where the mark would else stand within a line.
func newline(side string, before bool) string {
	if side == "" || before && side[len(side)-1] == '\n' || !before && side[0] == '\n' {
		return ""
	}
	return "\n"
}

// nearLine is how much of a part is given up for a whole line: an eighth.
const nearLine = 8

// prefix is how many bytes of text are so many tokens.
func prefix(text string, tokens int) int {
	cost, end := 0, 0 // in thirds of a token
	for i, r := range text {
		if cost += price(r); cost > tokens*asciiPerToken {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	for i := end; i > end-end/nearLine; i-- {
		if text[i-1] == '\n' {
			return i
		}
	}
	return end
}

// suffix is the same from text's end.
func suffix(text string, tokens int) int {
	cost, begin := 0, len(text)
	for begin > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:begin])
		if cost += price(r); cost > tokens*asciiPerToken {
			break
		}
		begin -= size
	}
	for i := begin; i < begin+(len(text)-begin)/nearLine; i++ {
		if i > 0 && text[i-1] == '\n' {
			return len(text) - i
		}
	}
	return len(text) - begin
}

func price(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return asciiPerToken
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
