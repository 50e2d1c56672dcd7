package adversarial

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Answer is what came of a request.
type Answer struct {
	Status  int
	Header  http.Header
	Body    []byte
	Took    time.Duration // from the request's begin to the reply's last byte
	Left    bool          // the request was to leave, and did: there is no answer
	Reply   *Reply        // if it is one of a run
	Problem *Problem      // if it is one
}

// Reply is that of a run, as far as cases look at it.
type Reply struct {
	ID        string     `json:"id"`
	Status    string     `json:"status"`
	Text      string     `json:"text"`
	Outputs   []Output   `json:"outputs"`
	Images    []Named    `json:"images"`
	Files     []Named    `json:"files"`
	Skipped   []Skipped  `json:"skipped"`
	Error     *Exception `json:"error"`
	Hint      string     `json:"hint"`
	Notebook  Named      `json:"notebook"`
	Truncated bool       `json:"truncated"`
	ExitCode  *int       `json:"exit_code"`
	Session   *struct {
		ID              string `json:"id"`
		KernelRestarted bool   `json:"kernel_restarted"`
	} `json:"session"`
	Usage struct {
		WallMS int64 `json:"wall_ms"`
		CPUMS  int64 `json:"cpu_ms"`
	} `json:"usage"`
}

// Output is one entry of outputs.
type Output struct {
	Cell int                        `json:"cell"`
	Type string                     `json:"type"`
	Name string                     `json:"name"`
	Text string                     `json:"text"`
	Data map[string]json.RawMessage `json:"data"`
}

// Named is an image, a file or the notebook.
type Named struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"`
}

// Exception is what the code raised.
type Exception struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Line      int    `json:"line"`
}

// Problem is an RFC 9457 error.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
}

// parse finds out what the body is.
func (a *Answer) parse() {
	mediaType, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	switch mediaType {
	case "application/problem+json":
		a.Problem = new(Problem)
		if json.Unmarshal(a.Body, a.Problem) != nil || a.Problem.Status != a.Status {
			a.Problem = nil
		}
	case "application/json":
		var r Reply
		if json.Unmarshal(a.Body, &r) == nil && strings.HasPrefix(r.ID, "run_") {
			a.Reply = &r
		}
	}
}

// link returns the URL that the reply has for {file:NAME}, {image:NAME} or
// {notebook}; empty if it has none.
func (a *Answer) link(to string) string {
	if a == nil || a.Reply == nil {
		return ""
	}
	if to == "notebook" {
		return a.Reply.Notebook.URL
	}
	kind, name, _ := strings.Cut(to, ":")
	list := a.Reply.Files
	if kind == "image" {
		list = a.Reply.Images
	}
	for _, n := range list {
		if n.Name == name || n.Path == name {
			return n.URL
		}
	}
	return ""
}

// Failure is one thing about an outcome that is not as expected.
type Failure struct {
	Late bool // it came too late, and may be due to a machine under load
	Text string
}
