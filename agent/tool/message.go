package tool

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"strings"
)

// Options say how a Result is told.
type Options struct {
	// Budget is what the text may be long, in tokens as Tokens counts them; 0 is
	// DefaultBudget. The lines that name images and files come on top, and image parts.
	Budget int
	// ImageParts sends images as parts in the notations that have them for the results
	// of tools: not in ChatCompletions. Only some models take them. Otherwise, and
	// beside, they are URLs in the text.
	ImageParts bool
}

// Bounds on what a message carries besides its text.
const (
	maxLinks     = 30      // images and files that are named in addition to the text
	maxParts     = 8       // images that are parts; a model looks at few
	maxPartBytes = 3 << 20 // of one of them; Anthropic takes 5 MB in base64
	maxHint      = 2_000   // bytes
)

// partTypes are the media types that all providers take as an image.
var partTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// Text is what a model reads of r: the output, cut to the budget, the images and files
// that the cut text does not name, and for a run that failed its status and the hint.
func Text(r Result, o Options) string {
	text := r.Text
	if r.Error != nil && r.Error.Traceback != "" {
		if short := Essence(r.Error.Traceback); short != r.Error.Traceback {
			text = strings.Replace(text, r.Error.Traceback, short, 1)
		}
	}
	budget := min(cmp.Or(max(o.Budget, 0), DefaultBudget), MaxBudget)
	text = strings.TrimRight(Cut(text, budget), "\n")
	var lines []string
	if r.Failed() {
		lines = append(lines, fmt.Sprintf("[The run did not succeed: %s.]", r.why()))
	}
	switch {
	case text != "":
		lines = append(lines, text)
	case !r.Failed() && len(r.Images)+len(r.Files) == 0:
		lines = append(lines, "[The program ended well and put out nothing. Use print() for what is to be read.]")
	}
	lines = append(lines, links(r, text)...)
	if r.Failed() && r.Hint != "" {
		lines = append(lines, "Hint: "+strings.ToValidUTF8(r.Hint[:min(len(r.Hint), maxHint)], ""))
	}
	return strings.Join(lines, "\n")
}

// why says what became of a run that failed.
func (r Result) why() string {
	if r.notInstalled() {
		return "its packages could not be installed, and no code was run"
	}
	return word(r.Status)
}

// word is a status as a sentence can hold it.
func word(status string) string {
	switch status {
	case "error":
		return "the code raised an exception"
	case "timeout":
		return "it took longer than its time limit"
	case "out_of_memory":
		return "it ran out of memory"
	case "output_limit":
		return "it put out too much"
	case "killed":
		return "its interpreter died"
	case "cancelled":
		return "it was cancelled"
	}
	return "it ended early"
}

// links names the images and files that text does not.
func links(r Result, text string) (lines []string) {
	rest := 0
	add := func(kind, name, url, lost string) {
		switch {
		case url != "" && strings.Contains(text, url):
		case len(lines) >= maxLinks:
			rest++
		case url == "" && lost != "":
			lines = append(lines, fmt.Sprintf("[%s %s was not kept: %s]", kind, name, lost))
		case url != "":
			lines = append(lines, fmt.Sprintf("[%s %s: %s]", kind, name, url))
		}
	}
	for _, i := range r.Images {
		add("image", oneLine(i.Name), i.URL, i.Error)
	}
	for _, f := range r.Files {
		add("file", oneLine(f.Path), f.URL, f.Error)
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("[… %d more images and files …]", rest))
	}
	return lines
}

// DataFolder is where a run's files are. Their paths begin with it and a slash.
const DataFolder = "/mnt/data"

// oneLine keeps a hostile name from looking like more than a name.
func oneLine(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(name, "/")), DataFolder+"/")
	return strings.Join(strings.Fields(strings.Trim(name, "/")), " ")
}

// Message is what goes back to the model for c, to be written as JSON: a message with
// role tool for ChatCompletions, an item of the input for Responses, a content block of
// the next user message for Anthropic, a part of the next user content for Gemini.
func Message(c Call, r Result, o Options) any {
	return c.message(Text(r, o), r.Failed(), parts(c.Notation, r, o))
}

// Told is the message for a call with About: what a says of the call's language.
func Told(c Call, a About) any { return c.message(a.Tell(c.Language), false, nil) }

// Refusal is the message for a call that was not run.
func Refusal(c Call, why error) any { return c.message(why.Error(), true, nil) }

// parts are the images that are sent as such.
func parts(n Notation, r Result, o Options) (out []Image) {
	if !o.ImageParts || n == ChatCompletions {
		return nil
	}
	for _, i := range r.Images {
		if len(out) < maxParts && partTypes[i.MediaType] && len(i.Data) > 0 && len(i.Data) <= maxPartBytes {
			out = append(out, i)
		}
	}
	return out
}

func (c Call) message(text string, failed bool, images []Image) any {
	switch c.Notation {
	case Responses:
		kind := "function_call_output"
		if c.free {
			kind = "custom_tool_call_output"
		}
		return map[string]any{"type": kind, "call_id": c.ID, "output": responsesOutput(text, images)}
	case Anthropic:
		content := []any{map[string]any{"type": "text", "text": text}}
		for _, i := range images {
			content = append(content, map[string]any{"type": "image", "source": map[string]any{
				"type": "base64", "media_type": i.MediaType, "data": encoded(i),
			}})
		}
		m := map[string]any{"type": "tool_result", "tool_use_id": c.ID, "content": content}
		if failed {
			m["is_error"] = true
		}
		return m
	case Gemini:
		return map[string]any{"functionResponse": geminiResponse(c, text, failed, images)}
	default:
		return map[string]any{"role": "tool", "tool_call_id": c.ID, "content": text}
	}
}

func responsesOutput(text string, images []Image) any {
	if len(images) == 0 {
		return text
	}
	list := []any{map[string]any{"type": "input_text", "text": text}}
	for _, i := range images {
		list = append(list, map[string]any{
			"type": "input_image", "detail": "auto", "image_url": "data:" + i.MediaType + ";base64," + encoded(i),
		})
	}
	return list
}

func geminiResponse(c Call, text string, failed bool, images []Image) any {
	key := "output"
	if failed {
		key = "error"
	}
	m := map[string]any{"name": cmp.Or(c.Name, Name), "response": map[string]any{key: text}}
	if c.ID != "" {
		m["id"] = c.ID
	}
	var list []any
	for _, i := range images {
		list = append(list, map[string]any{"inlineData": map[string]any{"mimeType": i.MediaType, "data": encoded(i)}})
	}
	if list != nil {
		m["parts"] = list
	}
	return m
}

func encoded(i Image) string { return base64.StdEncoding.EncodeToString(i.Data) }
