package adversarial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// neighbourCode prints a line every 50 ms until it is told to stop.
const neighbourCode = `import time
i = 0
while True:
    print('line', i, flush=True)
    i += 1
    time.sleep(0.05)`

// neighbourLimit is its own time limit, above what any case takes.
const neighbourLimit = 5 * time.Minute

// neighbour is a run of somebody else on the same service, which goes on for as
// long as the case does.
type neighbour struct {
	service string
	id      string
	events  atomic.Int64 // outputs so far
	ended   chan error
}

// beginNeighbour returns when the first line has come.
func beginNeighbour(ctx context.Context, service string) (*neighbour, error) {
	n := &neighbour{service: service, ended: make(chan error, 1)}
	body, err := json.Marshal(map[string]any{"timeout": neighbourLimit.Seconds(), "code": neighbourCode})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, neighbourLimit+patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, service+executePath, strings.NewReader(string(body)))
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	begun := make(chan struct{})
	go func() {
		defer cancel()
		n.ended <- n.follow(req, begun)
	}()
	select {
	case <-begun:
		return n, nil
	case err := <-n.ended:
		return nil, fmt.Errorf("the neighbour did not begin: %w", err)
	}
}

// follow reads the events of the run, and holds its reply against what it prints.
func (n *neighbour) follow(req *http.Request, begun chan<- struct{}) error {
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", res.StatusCode)
	}
	var event string
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20) // the whole reply is one line
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case event == "started":
			var started struct{ ID string }
			if err := json.Unmarshal([]byte(data), &started); err != nil {
				return err
			}
			n.id = started.ID
		case event == "output" && n.events.Add(1) == 1:
			close(begun)
		case event == "done" || event == "error":
			return n.check(data)
		}
	}
	return fmt.Errorf("its stream ended early: %w", lines.Err())
}

// check holds the reply of a run that was cancelled: every line until then.
func (n *neighbour) check(data string) error {
	var r Reply
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		return err
	}
	var want strings.Builder
	for i := range strings.Count(r.Text, "\n") {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if r.Status != "cancelled" || want.Len() == 0 || r.Text != want.String() {
		return fmt.Errorf("it is %s and printed %s", r.Status, shown(r.Text))
	}
	return nil
}

// end sees that the run still goes on, and cancels it. A nil error says that nothing
// of it was lost.
func (n *neighbour) end(ctx context.Context) error {
	before := n.events.Load()
	for deadline := time.Now().Add(patience); n.events.Load() == before; {
		select {
		case err := <-n.ended:
			return fmt.Errorf("the neighbour ended by itself: %w", err)
		case <-time.After(settlePoll):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the neighbour has printed nothing for %v", patience)
		}
	}
	client := Client{URL: n.service}
	answers, err := client.Send(ctx, &Request{Method: http.MethodDelete, Path: "/v1/executions/" + n.id}, nil)
	if err != nil {
		return fmt.Errorf("cancel the neighbour: %w", err)
	}
	if answers[0].Status >= 300 {
		return fmt.Errorf("cancel the neighbour: HTTP %d: %s", answers[0].Status, answers[0].Body)
	}
	if err := <-n.ended; err != nil {
		return fmt.Errorf("the neighbour: %w", err)
	}
	return nil
}
