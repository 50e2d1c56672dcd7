package notebook

import (
	"fmt"
	"unicode/utf8"
)

// clamp returns text as Shorten does, and records that it was cut.
func (r *reading) clamp(cell int, mediaType, what, text string, limit int64) string {
	if int64(len(text)) <= limit {
		return text
	}
	r.cut(cell, mediaType, "%s has %d bytes, the limit is %d", what, len(text), limit)
	return Shorten(text, limit)
}

// Shorten returns text cut to limit bytes and a mark. Both ends stay, since the last
// lines say how it ended, and a line between them tells what is missing.
func Shorten(text string, limit int64) string {
	if int64(len(text)) <= limit {
		return text
	}
	first, last := head(text, int(limit-limit/4)), tail(text, int(limit/4))
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", first, len(text)-len(first)-len(last), last)
}

// head returns the longest prefix of s of at most n bytes that splits no rune.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns the longest suffix of s of at most n bytes that splits no rune.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	start := len(s) - n
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}
