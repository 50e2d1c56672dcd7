package builder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	control "github.com/moby/buildkit/api/services/control"
)

// message is one of the daemon's about a build. Source: the Docker API, ImageBuild; trace and
// its contents are BuildKit's.
type message struct {
	ID    string          `json:"id"`
	Aux   json.RawMessage `json:"aux"`
	Error string          `json:"error"`
}

// trace is the ID of messages that have a StatusResponse.
const trace = "moby.buildkit.trace"

var (
	// step is the name of one in a Dockerfile: "[4/9] RUN …", and with a stage "[build 2/5] …".
	step = regexp.MustCompile(`^\[[^\]]*\d+/\d+\] `)
	// mounts are of no use to who reads.
	mounts = regexp.MustCompile(`--mount=\S* *`)
)

// What is shown and kept, in bytes.
const (
	maxStep = 100
	// maxLog holds what pip and apt say of a failure, with what they had done before.
	maxLog = 64 << 10
)

// follow reads what the daemon says of a build to its end. say gets each step once.
func follow(r io.Reader, ref string, say func(format string, values ...any)) error {
	var kept tail
	seen := map[string]bool{}
	for messages := json.NewDecoder(r); ; {
		var m message
		err := messages.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("build %s: the daemon's answer: %w", ref, err)
		case m.Error != "":
			return &FailedError{Ref: ref, Why: m.Error, Log: kept.String()}
		case m.ID != trace:
			continue
		}
		var raw []byte
		var status control.StatusResponse
		if json.Unmarshal(m.Aux, &raw) != nil || status.UnmarshalVT(raw) != nil {
			continue // what it says is for people alone
		}
		for _, v := range status.Vertexes {
			if v.Started != nil && step.MatchString(v.Name) && !seen[v.Digest] {
				seen[v.Digest] = true
				say("%s: %.*s", ref, maxStep, mounts.ReplaceAllString(v.Name, ""))
				kept.add(v.Name + "\n")
			}
		}
		for _, log := range status.Logs {
			kept.add(string(log.Msg))
		}
	}
}

// tail keeps the end of a log.
type tail struct{ b strings.Builder }

func (t *tail) add(text string) {
	if t.b.Len()+len(text) > 2*maxLog {
		old := t.String()
		t.b.Reset()
		t.b.WriteString(old)
	}
	t.b.WriteString(text)
}

func (t *tail) String() string {
	text := t.b.String()
	return text[max(0, len(text)-maxLog):]
}
