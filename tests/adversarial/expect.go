package adversarial

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Expect is the outcome of one request. What is not given is not looked at.
type Expect struct {
	Status list[int]    `yaml:"status"` // of HTTP; 200 if not given; one of them
	Run    list[string] `yaml:"run"`    // the reply's status: one of them

	Text      *Match `yaml:"text"`      // of the reply
	Error     *Match `yaml:"error"`     // its error's name; "" for no error
	Message   *Match `yaml:"message"`   // its error's message
	Traceback *Match `yaml:"traceback"` // its error's traceback
	Hint      *Match `yaml:"hint"`
	Truncated *bool  `yaml:"truncated"`
	ExitCode  *int   `yaml:"exit_code"`        // of a shell command
	Restarted *bool  `yaml:"kernel_restarted"` // the session's kernel is another one

	Files   *[]File    `yaml:"files"`   // all of them, in order
	Images  *[]File    `yaml:"images"`  // all of them, in order
	Skipped *[]Skipped `yaml:"skipped"` // all of them, in order

	Detail  *Match            `yaml:"detail"` // of a problem
	Headers map[string]*Match `yaml:"headers"`
	Body    *Match            `yaml:"body"` // as it came

	Wall    *Span `yaml:"wall"`    // seconds of the run, on the sandbox's clock
	Within  int64 `yaml:"within"`  // seconds from the request's first byte to the reply's last
	Bytes   int64 `yaml:"bytes"`   // of the reply, at most
	Outputs *Span `yaml:"outputs"` // how many the reply has
}

// File is a file or image that the reply names. Bytes is looked at if it is given.
type File struct {
	Path  string `yaml:"path"` // of an image its name
	Bytes *int64 `yaml:"bytes"`
}

// Skipped is what the reply says was left out; both are regular expressions that
// match the whole.
type Skipped struct {
	Path   string `yaml:"path"`
	Reason string `yaml:"reason"`
}

// Span is from min to max, both included; 0 is no limit.
type Span struct {
	Min float64 `yaml:"min"`
	Max float64 `yaml:"max"`
}

// Match is what a text must be like. A plain string in YAML is Equals.
type Match struct {
	Equals   *string      `yaml:"equals"`
	Contains list[string] `yaml:"contains"`
	Lacks    list[string] `yaml:"lacks"`
	Matches  list[string] `yaml:"matches"` // regular expressions, (?s)
}

// list is one value or a sequence of them.
type list[T any] []T

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *list[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode((*[]T)(l))
	}
	var one T
	err := node.Decode(&one)
	*l = list[T]{one}
	return err
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *Match) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		m.Equals = new(string)
		return node.Decode(m.Equals)
	}
	type plain Match
	if err := node.Load((*plain)(m), yaml.WithKnownFields()); err != nil {
		return err
	}
	for _, pattern := range m.Matches {
		if _, err := regexp.Compile(pattern); err != nil {
			return err
		}
	}
	return nil
}

func (m *Match) failures(what, have string) (out []string) {
	if m == nil {
		return nil
	}
	if m.Equals != nil && have != *m.Equals {
		out = append(out, fmt.Sprintf("%s is %s, not %s", what, shown(have), shown(*m.Equals)))
	}
	for _, part := range m.Contains {
		if !strings.Contains(have, part) {
			out = append(out, fmt.Sprintf("%s lacks %s: %s", what, shown(part), shown(have)))
		}
	}
	for _, part := range m.Lacks {
		if strings.Contains(have, part) {
			out = append(out, fmt.Sprintf("%s has %s: %s", what, shown(part), shown(have)))
		}
	}
	for _, pattern := range m.Matches {
		if !regexp.MustCompile("(?s)" + pattern).MatchString(have) {
			out = append(out, fmt.Sprintf("%s does not match %s: %s", what, pattern, shown(have)))
		}
	}
	return out
}

// maxShown bounds what a failure quotes, bytes: enough for a traceback.
const maxShown = 3000

func shown(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxShown], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// valid reports an expectation that any answer would meet.
func (e *Expect) valid(ofRun bool) error {
	if e.refuses() && len(e.Run) > 0 {
		return errors.New("a refusal has no status of a run")
	}
	if ofRun && len(e.Run) == 0 && len(e.Status) == 0 {
		return errors.New("it expects neither a status of the run nor of HTTP")
	}
	return nil
}

func (e *Expect) refuses() bool {
	return len(e.Status) > 0 && !slices.Contains(e.Status, 200)
}

// Failures hold an answer against what was expected. load is how many times slower
// than alone this machine was meanwhile.
func (e *Expect) Failures(a *Answer, load float64) []Failure {
	wrong := e.wrong(a)
	var out []Failure
	for _, text := range wrong {
		out = append(out, Failure{Text: text})
	}
	if e.Within > 0 && a.Took > loaded(time.Duration(e.Within)*time.Second, load) {
		out = append(out, Failure{Late: true, Text: fmt.Sprintf("the reply took %v, more than %d s", a.Took, e.Within)})
	}
	if e.Wall != nil && a.Reply != nil {
		wall := float64(a.Reply.Usage.WallMS) / 1000
		if wall < e.Wall.Min {
			out = append(out, Failure{Text: fmt.Sprintf("the run took %v s, less than %v s", wall, e.Wall.Min)})
		}
		if e.Wall.Max > 0 && wall > e.Wall.Min+(e.Wall.Max-e.Wall.Min)*load {
			out = append(out, Failure{Late: true, Text: fmt.Sprintf("the run took %v s, more than %v s", wall, e.Wall.Max)})
		}
	}
	return out
}

func (e *Expect) wrong(a *Answer) (out []string) {
	status := e.Status
	if len(status) == 0 {
		status = list[int]{200}
	}
	if !slices.Contains(status, a.Status) {
		return []string{fmt.Sprintf("HTTP %d, not %v: %s", a.Status, status, shown(string(a.Body)))}
	}
	for name, m := range e.Headers {
		out = append(out, m.failures("the header "+name, strings.Join(a.Header.Values(name), ", "))...)
	}
	out = append(out, e.Body.failures("the body", string(a.Body))...)
	if e.Bytes > 0 && int64(len(a.Body)) > e.Bytes {
		out = append(out, fmt.Sprintf("the reply has %d bytes, more than %d", len(a.Body), e.Bytes))
	}
	if a.Status >= 400 {
		if a.Problem == nil {
			out = append(out, "no problem+json: "+shown(string(a.Body)))
		} else {
			out = append(out, e.Detail.failures("the detail", a.Problem.Detail)...)
		}
	}
	if r := a.Reply; r != nil {
		out = append(out, e.wrongReply(r)...)
	} else if len(e.Run) > 0 && a.Status == 200 {
		out = append(out, "no reply of a run: "+shown(string(a.Body)))
	}
	return out
}

func (e *Expect) wrongReply(r *Reply) (out []string) {
	if len(e.Run) > 0 && !slices.Contains(e.Run, r.Status) {
		out = append(out, fmt.Sprintf("the run is %s, not %v: %s %s", r.Status, []string(e.Run), shown(r.Text), shown(r.Hint)))
	}
	var raised Exception
	if r.Error != nil {
		raised = *r.Error
	}
	out = append(out, e.Text.failures("the text", r.Text)...)
	out = append(out, e.Hint.failures("the hint", r.Hint)...)
	out = append(out, e.Error.failures("the error", raised.Name)...)
	out = append(out, e.Message.failures("the error's message", raised.Message)...)
	out = append(out, e.Traceback.failures("the traceback", raised.Traceback)...)
	if e.Truncated != nil && *e.Truncated != r.Truncated {
		out = append(out, fmt.Sprintf("truncated is %v", r.Truncated))
	}
	if e.ExitCode != nil && (r.ExitCode == nil || *e.ExitCode != *r.ExitCode) {
		out = append(out, fmt.Sprintf("the exit code is not %d: %s", *e.ExitCode, shown(r.Text)))
	}
	if e.Restarted != nil && (r.Session == nil || *e.Restarted != r.Session.KernelRestarted) {
		out = append(out, fmt.Sprintf("kernel_restarted is not %v: %s", *e.Restarted, shown(r.Text)))
	}
	if n := float64(len(r.Outputs)); e.Outputs != nil && (n < e.Outputs.Min || e.Outputs.Max > 0 && n > e.Outputs.Max) {
		out = append(out, fmt.Sprintf("there are %v outputs, not %v to %v", n, e.Outputs.Min, e.Outputs.Max))
	}
	var files, images []File
	for _, f := range r.Files {
		files = append(files, File{f.Path, &f.Bytes})
	}
	for _, f := range r.Images {
		images = append(images, File{f.Name, &f.Bytes})
	}
	out = append(out, sameFiles("files", e.Files, files)...)
	out = append(out, sameFiles("images", e.Images, images)...)
	return append(out, sameSkipped(e.Skipped, r.Skipped)...)
}

func sameFiles(what string, want *[]File, have []File) []string {
	if want == nil {
		return nil
	}
	if !slices.EqualFunc(*want, have, func(w, h File) bool {
		return w.Path == h.Path && (w.Bytes == nil || *w.Bytes == *h.Bytes)
	}) {
		return []string{fmt.Sprintf("%s are %s, not %s", what, named(have), named(*want))}
	}
	return nil
}

func named(files []File) string {
	var out []string
	for _, f := range files {
		size := ""
		if f.Bytes != nil {
			size = fmt.Sprintf(" (%d)", *f.Bytes)
		}
		out = append(out, f.Path+size)
	}
	return shown(strings.Join(out, ", "))
}

func sameSkipped(want *[]Skipped, have []Skipped) []string {
	if want == nil {
		return nil
	}
	if !slices.EqualFunc(*want, have, func(w, h Skipped) bool {
		return whole(w.Path, h.Path) && whole(w.Reason, h.Reason)
	}) {
		return []string{fmt.Sprintf("skipped is %q, not %q", have, *want)}
	}
	return nil
}

func whole(pattern, have string) bool {
	return regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(have)
}
