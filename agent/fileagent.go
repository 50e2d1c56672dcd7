package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The file agent's tools.
const (
	toolList = "list_files"
	toolRead = "read_file"
	toolHand = "hand_over"
)

func fileTools() []Tool {
	schema := func(required []string, properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	number := func(description string) map[string]any {
		return map[string]any{"type": "integer", "description": description}
	}
	return []Tool{
		{toolList, "Lists a folder: names relative to the top, and sizes in bytes. Folders end with a slash.", schema([]string{}, map[string]any{
			"folder": text("Relative to the top; left out for the top itself."),
		})},
		{toolRead, fmt.Sprintf("Reads a part of a file: text, at most %d bytes.", maxRead), schema([]string{"path"}, map[string]any{
			"path": text("As list_files names it."), "offset": number("Byte to begin at; 0 if left out."), "bytes": number("How many; 4096 if left out."),
		})},
		{toolHand, "Gives files and the task to the colleague who runs code. This ends your part.", schema([]string{"files", "task"}, map[string]any{
			"files": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "Paths as list_files names them; empty if none is needed."},
			"task":  text("What the colleague is to do, and what is known of the files."),
		})},
	}
}

// defaultRead is what read_file returns if it is not told how much: a table's first rows.
const defaultRead = 4 << 10

// handed is what the file agent gives to the code agent.
type handed struct {
	task  string
	files []File
}

// askFileAgent returns what it hands over, or what it says to the user instead. It is
// told the questions, and what the folder holds; nothing else.
func (x *question) askFileAgent(ctx context.Context, q Question) (*handed, string, error) {
	c := x.conversation
	text := q.Text
	for _, f := range q.Files { // of these only the names: they are not in the folder
		text += fmt.Sprintf("\n[The user gave your colleague the file /mnt/data/%s.]", f.Name)
	}
	var out *handed
	messages := append(c.file.messages(), Message{Role: RoleUser, Text: text})
	said, all, err := x.converse(ctx, role{
		name: FileAgent, mind: c.agent.file, instructions: filePrompt(c.agent.file.Prompt), tools: fileTools(),
		call: func(_ context.Context, call ToolCall) (o outcome, err error) {
			o, out = x.fileCall(call, out)
			return o, nil
		},
	}, messages)
	if err == nil {
		c.file.add(all[len(messages)-1:], said, x.answer.Stopped)
	}
	if x.answer.Stopped != StoppedNot {
		out = nil
	}
	return out, said, err
}

// fileCall runs one call of the file agent.
func (x *question) fileCall(c ToolCall, before *handed) (outcome, *handed) {
	o := outcome{step: Step{Role: FileAgent, Tool: c.Name, Input: c.Arguments}}
	x.sink(Event{Kind: EventCall, Role: FileAgent, Step: &o.step})
	text, out, err := x.conversation.agent.folder.call(c)
	if err != nil {
		o.step.Status, o.step.Output = statusRefused, err.Error()
		return o, before
	}
	o.step.Status, o.step.Output, o.done = "ok", text, out != nil
	return o, out
}

// call does what a call of the file agent says; the last result is for hand_over.
func (f *Folder) call(c ToolCall) (string, *handed, error) {
	var in struct {
		Folder string   `json:"folder"`
		Path   string   `json:"path"`
		Offset int64    `json:"offset"`
		Bytes  int      `json:"bytes"`
		Files  []string `json:"files"`
		Task   string   `json:"task"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
		return "", nil, fmt.Errorf("the arguments of %s could not be read (%w): they must be one JSON object, as the tool's schema says", c.Name, err)
	}
	if err := checkArguments(c); err != nil {
		return "", nil, err
	}
	switch c.Name {
	case toolList:
		text, err := f.listing(in.Folder)
		return text, nil, named(in.Folder, err)
	case toolRead:
		text, err := f.reading(in.Path, in.Offset, in.Bytes)
		return text, nil, named(in.Path, err)
	case toolHand:
		out, err := f.handOver(in.Files, in.Task)
		return "Handed over.", out, err
	}
	return "", nil, fmt.Errorf("there is no tool %q: there are %s, %s and %s", c.Name, toolList, toolRead, toolHand)
}

// checkArguments refuses a call that has arguments which its tool does not have, or lacks one
// that it must have: what they may mean is not guessed.
func checkArguments(c ToolCall) error {
	at := slices.IndexFunc(fileTools(), func(t Tool) bool { return t.Name == c.Name })
	if at < 0 {
		return nil // which is told
	}
	schema := fileTools()[at].Parameters
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Arguments), &given); err != nil {
		return err // cannot be: it was read before
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := schema["properties"].(map[string]any)[name]; !known {
			return fmt.Errorf("%s has no argument %q: nothing was done; call it as its schema says", c.Name, name)
		}
	}
	for _, name := range schema["required"].([]string) {
		if value := given[name]; value == nil || string(value) == "null" {
			return fmt.Errorf("%s lacks its argument %s: nothing was done; call it as its schema says", c.Name, name)
		}
	}
	return nil
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q: %w", name, err)
}

func (f *Folder) listing(name string) (string, error) {
	list, more, err := f.List(name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range list {
		if strings.HasSuffix(e.Name, "/") {
			fmt.Fprintf(&b, "%s\n", e.Name)
		} else {
			fmt.Fprintf(&b, "%s (%d bytes)\n", e.Name, e.Size)
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "[… %d more]\n", more)
	}
	if b.Len() == 0 {
		return "[The folder is empty.]", nil
	}
	return b.String(), nil
}

func (f *Folder) reading(name string, offset int64, most int) (string, error) {
	if most <= 0 {
		most = defaultRead
	}
	part, size, err := f.Read(name, offset, most)
	if err != nil {
		return "", err
	}
	text := strings.ToValidUTF8(string(part), "\uFFFD")
	if strings.ContainsRune(text, 0) || strings.Count(text, "\uFFFD") > utf8.UTFMax {
		return preview(part, size), nil
	}
	return fmt.Sprintf("[bytes %d to %d of %d]\n%s", offset, offset+int64(len(part)), size, text), nil
}

// handOver takes all files or none.
func (f *Folder) handOver(names []string, task string) (*handed, error) {
	if len(names) > maxHandFiles {
		return nil, fmt.Errorf("%d files are too many: at most %d can be handed over", len(names), maxHandFiles)
	}
	out := &handed{task: strings.TrimSpace(task)}
	var all []error
	var size int64
	seen := map[string]bool{}
	for _, name := range names {
		file, err := f.File(name)
		if err != nil {
			all = append(all, named(name, err))
			continue
		}
		if size += file.Size; !seen[file.Name] {
			out.files = append(out.files, file)
		}
		seen[file.Name] = true
	}
	if size > maxHandTotal {
		all = append(all, fmt.Errorf("together they have %d bytes, and at most %d can be handed over", size, maxHandTotal))
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	return out, nil
}
