package discord

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxContent bounds one message, in code points, as Discord counts them (so said by
// its staff in github.com/discord/discord-api-docs/issues/1315).
const maxContent = 2000

// part is a piece of a text, with what makes it a message of its own.
type part struct {
	before string // opens the block of code again that the part before had to close
	text   string // of the whole, byte for byte
	after  string // closes it
}

func (p part) String() string { return p.before + p.text + p.after }

// Split cuts a text into messages of at most limit code points, 100 and more. It cuts
// between paragraphs rather than lines, lines rather than words, and words rather than
// what a reader sees as one character. A block of code that is cut is closed, and opened
// again with its language.
func Split(text string, limit int) []string {
	var out []string
	for _, p := range split(text, limit) {
		if strings.TrimSpace(p.text) != "" { // Discord takes no empty message
			out = append(out, p.String())
		}
	}
	return out
}

func split(text string, limit int) (out []part) {
	fence := ""
	for text != "" {
		p := part{}
		if fence != "" {
			p.before = fence + "\n"
		}
		at, after := cut(text, fence, limit-utf8.RuneCountInString(p.before))
		p.text, text = text[:at], text[at:]
		if fence = after; fence != "" {
			p.after = "```"
			if !strings.HasSuffix(p.text, "\n") {
				p.after = "\n```"
			}
		}
		out = append(out, p)
	}
	return out
}

// opening is a line that opens a block of code, short enough to be said again.
var opening = regexp.MustCompile("^```[A-Za-z0-9_+.#-]{0,32}$")

// fenceAfter is the fence that is open after a line.
func fenceAfter(fence, line string) string {
	switch line = strings.TrimRight(line, " \t\r\n"); {
	case fence != "" && line == "```":
		return ""
	case fence == "" && opening.MatchString(line):
		return line
	}
	return fence
}

// closing is what must follow a cut within a block of code, at most, in code points.
const closing = len("\n```")

// The ranks of places to cut at: a better one is taken if it is in the second half.
const (
	anywhere = iota
	ofWords
	ofLines
	ofBlocks
	ofParagraphs
	ranks
)

// places are the last of each rank that a message has room for.
type places struct {
	at    [ranks]int
	fence [ranks]string
}

func (p *places) add(rank, at int, fence string) {
	if at > 0 {
		p.at[rank], p.fence[rank] = at, fence
	}
}

// best is where to cut. There is none if room is less than a character.
func (p *places) best() (int, string) {
	last := 0
	for _, at := range p.at {
		last = max(last, at)
	}
	for rank := ranks - 1; rank >= 0; rank-- {
		if at := p.at[rank]; at > 0 && at*2 >= last {
			return at, p.fence[rank]
		}
	}
	return last, ""
}

// cut says how much of a text goes into a message with room for that many code points,
// the closing fence included, and which fence is open there.
func cut(text, fence string, room int) (at int, open string) {
	var found places
	used := 0
	for rest := text; rest != ""; {
		line, _, _ := strings.Cut(rest, "\n")
		whole := rest[:min(len(line)+1, len(rest))]
		after := fenceAfter(fence, line)
		isFence := after != fence
		cost := utf8.RuneCountInString(line)
		if !isFence && used+cost+closingOf(after) > room {
			found.within(line, len(text)-len(rest), room-used-closingOf(fence), fence)
			return found.best()
		}
		if isFence && used+cost+closingOf(after) > room {
			return found.best()
		}
		used += cost
		rest = rest[len(whole):]
		end := len(text) - len(rest)
		bare := end - (len(whole) - len(line))
		if rest == "" && used+len(whole)-len(line) <= room-closingOf(after) {
			return end, after
		}
		switch next, _, _ := strings.Cut(rest, "\n"); {
		case after != "" && (isFence || fenceAfter(after, next) == ""):
			// Nothing of the code would be before, or behind, the cut.
		case after != "": // the line's end, or one before the closing fence, is in closing
			found.add(ofLines, end, after)
		case isFence || opening.MatchString(strings.TrimRight(next, " \t\r")):
			found.add(ofBlocks, bare, "")
		case strings.TrimSpace(line) == "":
			found.add(ofParagraphs, bare, "")
		default:
			found.add(ofLines, bare, "")
		}
		used += len(whole) - len(line)
		fence = after
	}
	return found.best()
}

func closingOf(fence string) int {
	if fence == "" {
		return 0
	}
	return closing
}

// within adds the places in a line, which begins at start, that leave room.
func (p *places) within(line string, start, room int, fence string) {
	state, used, at := -1, 0, 0
	for rest := line; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		used += utf8.RuneCountInString(cluster)
		if used > room {
			break
		}
		at += len(cluster)
		p.add(anywhere, start+at, fence)
		if r, _ := utf8.DecodeRuneInString(cluster); unicode.IsSpace(r) {
			p.add(ofWords, start+at, fence)
		}
	}
	if last, _ := p.best(); last == 0 && room > 0 { // one character that fills a message
		for at = range line {
			if room--; room < 0 {
				break
			}
		}
		p.add(anywhere, start+at, fence)
	}
}
