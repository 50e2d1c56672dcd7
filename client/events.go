package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// errNoEnd is a stream of events that has none for its end.
var errNoEnd = unread(errors.New("the events broke off"))

// readEvents reads a run's server-sent events to the last, and tells of those before it.
func readEvents(r io.Reader, to *Listener) (*Result, error) {
	// Every output comes twice, the second time in the last event, which is one line.
	lines := bufio.NewScanner(io.LimitReader(r, 2*maxAnswer))
	lines.Buffer(nil, 2*maxAnswer)
	name := ""
	for lines.Scan() {
		field, data, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			name = data
		case field != "data":
		case name == "done":
			return readResult([]byte(data))
		case name == "error":
			e := &Error{}
			if err := json.Unmarshal([]byte(data), e); err != nil {
				return nil, unread(err)
			}
			return nil, e
		case to != nil:
			if err := to.event(name, []byte(data)); err != nil {
				return nil, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, unread(err)
	}
	return nil, errNoEnd
}
