package agent

// Sink hears of what goes on while a question is answered, in order and from one
// goroutine at a time. It should not block for long: the question waits. Everything in
// an Event but its kind and role is of a model or a sandbox, and not trusted: links in
// it are as they came.
type Sink func(Event)

// Event is something that went on.
type Event struct {
	Kind EventKind
	Role string // FileAgent or CodeAgent
	Text string // of EventText and EventLive; of EventOutput what the model is told
	Step *Step  // of EventCall, as far as it is known, and of EventOutput
}

// EventKind tells events apart.
type EventKind string

// The kinds.
const (
	EventText   EventKind = "text"   // a piece of the model's text
	EventAgain  EventKind = "again"  // the text since the last EventTurn does not count: the model begins anew
	EventCall   EventKind = "call"   // a tool call, about to be run
	EventLive   EventKind = "live"   // a piece of what the program puts out meanwhile, where the Executor tells
	EventOutput EventKind = "output" // its outcome
	EventTurn   EventKind = "turn"   // the model's turn, and all calls in it, are done
)

// The roles.
const (
	FileAgent = "file"
	CodeAgent = "code"
)

// Step is one tool call and its outcome.
type Step struct {
	Role   string `json:"role"`
	Tool   string `json:"tool"`   // as it is called in the definition
	Input  string `json:"input"`  // the code; of the file agent the arguments
	Status string `json:"status"` // of the run; "refused" if nothing was run; "" while it goes on
	Output string `json:"output"` // what the model is told
	// Dependencies are the packages that the call named.
	Dependencies []string `json:"dependencies,omitempty"`
}

// Failed reports whether the model has something to correct.
func (s *Step) Failed() bool { return s.Status != "ok" }

// statusRefused is of a call that was not run.
const statusRefused = "refused"
