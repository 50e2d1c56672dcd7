package dependencies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"notebox/environments"
	"notebox/runner"
)

const (
	// maxList is more than hosts.json and resolved.json can have.
	maxList = 2 << 20
	// maxLine of the installer's output, bytes: what is longer is passed on in pieces.
	maxLine = 8 << 10
)

// sink takes what an installer puts out and leaves behind, all of which is hostile.
type sink struct {
	tell   func(string)
	most   int64 // bytes of the archive's contents
	folder string

	line            strings.Builder // that has not ended
	raised          Failure
	resolved, hosts []byte
	packages        []environments.Package // of resolved, once that is decoded; none: nothing is to be installed
	archive         string                 // a file, checked; "" if there is none
	sum             string                 // of the archive as it is kept, which alone decides what a run sees
	bytes           int64                  // of its contents
	tooLarge        bool
	err             error // why a file cannot be used
}

func (l *Layers) newSink(tell func(string)) *sink {
	return &sink{tell: tell, most: l.options.MaxSize, folder: l.options.TempDir}
}

// Output implements runner.Sink.
func (s *sink) Output(e runner.Event) {
	var o struct {
		Type    string          `json:"output_type"`
		Text    json.RawMessage `json:"text"`
		Name    string          `json:"ename"`
		Message string          `json:"evalue"`
	}
	if e.Kind != runner.EventOutput || json.Unmarshal(e.Output, &o) != nil {
		return
	}
	switch o.Type {
	case "stream":
		s.write(textOf(o.Text))
	case "error":
		s.raised = Failure{o.Name, o.Message}
	}
}

// textOf is a multiline string of nbformat: a string, or several.
func textOf(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var several []string
	_ = json.Unmarshal(raw, &several) // another type than expected is no text
	return strings.Join(several, "")
}

// write passes on whole lines.
func (s *sink) write(text string) {
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		s.line.WriteString(line)
		text = rest
		if ended {
			s.line.WriteByte('\n')
		}
		if ended || s.line.Len() > maxLine {
			s.flush()
		}
	}
}

// flush passes on what there is.
func (s *sink) flush() {
	if s.line.Len() > 0 {
		s.tell(s.line.String())
		s.line.Reset()
	}
}

// File implements runner.Sink. What cannot be used is read to its end, and remembered.
func (s *sink) File(_ context.Context, path string, content io.Reader) (err error) {
	switch path {
	case resolvedFile:
		s.resolved, err = readAll(content)
	case hostsFile:
		s.hosts, err = readAll(content)
	case archiveFile:
		err = s.keep(content)
	}
	s.tooLarge = s.tooLarge || errors.Is(err, errTooLarge)
	if err != nil && s.err == nil {
		s.err = err
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return err
}

func readAll(content io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(content, maxList+1))
	if len(raw) > maxList {
		return nil, errors.New("a list of an installer is too large")
	}
	return raw, err
}

// keep writes the archive anew into a file.
func (s *sink) keep(content io.Reader) error {
	if s.archive != "" {
		return errors.New("there are two archives")
	}
	file, err := os.CreateTemp(s.folder, "layer-")
	if err != nil {
		return err
	}
	s.archive = file.Name()
	sum := sha256.New()
	s.bytes, err = rewrite(io.MultiWriter(file, sum), content, s.most)
	s.sum = hex.EncodeToString(sum.Sum(nil))
	return errors.Join(err, file.Close())
}

func (s *sink) remove() {
	if s.archive != "" {
		_ = os.Remove(s.archive) // the folder is emptied at the next start
	}
}
