package adversarial

import "time"

// Case is one file of cases/.
type Case struct {
	ID       string            `yaml:"id"`       // as in testdata/ids.txt
	Title    string            `yaml:"title"`    // what the input is
	Source   string            `yaml:"source"`   // where it comes from
	Here     *Here             `yaml:"here"`     // what this machine cannot show of it
	Settings map[string]string `yaml:"settings"` // flags of notebox serve, without --
	Attempt  `yaml:",inline"`
	Variants []Variant `yaml:"variants"` // of the same, each a run of its own
}

// Here says that the machine at hand cannot show a case, and what is run instead.
type Here struct {
	Cannot  string `yaml:"cannot"`
	Nearest string `yaml:"nearest"`
}

// Variant is another form of a case.
type Variant struct {
	Name    string `yaml:"name"`
	Attempt `yaml:",inline"`
}

// Attempt is what is sent, in this order.
type Attempt struct {
	Requests []Request `yaml:"requests"`
	// Check names the Go function that sends the requests in its own way, or looks
	// at more than the answers.
	Check string `yaml:"check"`
	// Session is the body of a POST /v1/sessions. If it is given, if only as {},
	// the requests go to that session, which is closed after them: runs are runs in
	// it, and {session} in a path stands for where it is.
	Session map[string]any `yaml:"session"`
}

// Request is one HTTP request. Without a method and a path it is a POST to
// /v1/execute. Of the forms of a body at most one is given; in it, {service} stands
// for the service's own address and port.
type Request struct {
	Method string `yaml:"method"`
	// Path may begin with {file:NAME}, {image:NAME} or {notebook}: the link to
	// that in the last reply of a run.
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"` // Host too

	Code    string         `yaml:"code"`    // the form for most: JSON with this code
	Cells   []string       `yaml:"cells"`   // or with these cells
	Timeout float64        `yaml:"timeout"` // seconds, of the run; 120 if not given
	Fields  map[string]any `yaml:"fields"`  // more fields of that JSON

	Raw      *string   `yaml:"raw"`      // a body as it is
	Base64   string    `yaml:"base64"`   // the same for bytes that YAML cannot hold
	Generate *Generate `yaml:"generate"` // a body that is too long for a file
	Chunked  bool      `yaml:"chunked"`  // sent without a length
	Gzip     bool      `yaml:"gzip"`     // sent compressed, however it is labelled

	// LeaveAfter closes the connection after so many seconds, reply or not.
	LeaveAfter float64 `yaml:"leave_after"`
	// AtOnce sends it so many times at one moment; each answer must be as expected.
	AtOnce int `yaml:"at_once"`
	// Beside sends it and goes on with those after it; its answer is looked at in the
	// end.
	Beside bool `yaml:"beside"`

	Expect Expect `yaml:"expect"`
}

// Generate is prefix, then repeat so many times, then suffix.
type Generate struct {
	Prefix string `yaml:"prefix"`
	Repeat string `yaml:"repeat"`
	Times  int    `yaml:"times"`
	Suffix string `yaml:"suffix"`
}

// defaultTimeout of a run whose request names none. What ends by itself must not
// meet it on a busy machine.
const defaultTimeout = 2 * time.Minute

func (r *Request) timeout() time.Duration {
	if r.Timeout <= 0 {
		return defaultTimeout
	}
	return time.Duration(r.Timeout * float64(time.Second))
}

// ofRun reports whether a request asks for code to be run.
func (r *Request) ofRun() bool { return r.Path == "" || r.Path == executePath }
