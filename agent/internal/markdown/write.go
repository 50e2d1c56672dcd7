package markdown

import (
	"regexp"
	"strings"
)

// Escape is a text that Markdown shows as it is.
func Escape(text string) string {
	return special.ReplaceAllString(strings.Join(strings.Fields(text), " "), `\$0`)
}

var special = regexp.MustCompile("[\\\\`*_{}\\[\\]()<>#!|~&]")

// Code is a text as inline code; "" of an empty one.
func Code(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "'")
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// Fence is a text as a block of code that nothing in it ends.
func Fence(text string) string {
	longest := 2
	for _, run := range backticks.FindAllString(text, -1) {
		longest = max(longest, len(run))
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "text\n" + text + "\n" + fence
}

var backticks = regexp.MustCompile("`+")
