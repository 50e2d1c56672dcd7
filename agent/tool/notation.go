package tool

import "slices"

// Notation is a provider's way to write tools, calls and their results.
type Notation string

// The notations.
const (
	// ChatCompletions is OpenAI's, and that of all who follow it.
	ChatCompletions Notation = "chat_completions"
	// Responses is OpenAI's newer one.
	Responses Notation = "responses"
	// Anthropic is that of the Messages API.
	Anthropic Notation = "anthropic"
	// Gemini is that of generateContent.
	Gemini Notation = "gemini"
)

// Notations lists all there are.
func Notations() []Notation { return []Notation{ChatCompletions, Responses, Anthropic, Gemini} }

// Known reports whether n is one of Notations.
func (n Notation) Known() bool {
	return slices.Contains(Notations(), n)
}
