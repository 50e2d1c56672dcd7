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

// neighbourCode prints a line every 50 ms until it is told to stop: each at once, as an interrupt may
// come between two writes.
const neighbourCode = `import time
i = 0
while True:
    print(f'line {i}\n', end='', flush=True)
    i += 1
    time.sleep(0.05)`

// neighbourLimit is its own time limit, above what any case takes.
const neighbourLimit = 5 * time.Minute

// neighbour is a run of somebody else on the same service, which goes on for as
// long as the case does.
type neighbour struct{ *stream }

// beginNeighbour returns when the first line has come.
func beginNeighbour(ctx context.Context, service string) (neighbour, error) {
	s, err := beginStream(ctx, service, neighbourCode)
	if err != nil {
		return neighbour{}, fmt.Errorf("the neighbour: %w", err)
	}
	return neighbour{s}, nil
}

// stream is a run whose events are followed.
type stream struct {
	service string
	id      string
	events  atomic.Int64 // outputs so far
	reply   Reply        // once it has ended
	ended   chan error
}

// beginStream starts a run and returns when the first output has come.
func beginStream(ctx context.Context, service, code string) (*stream, error) {
	n := &stream{service: service, ended: make(chan error, 1)}
	body, err := json.Marshal(map[string]any{"timeout": neighbourLimit.Seconds(), "code": code})
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
		return nil, fmt.Errorf("it did not begin: %w", err)
	}
}

// follow reads the events of the run to its end.
func (n *stream) follow(req *http.Request, begun chan<- struct{}) error {
	res, err := (&http.Client{Transport: direct()}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", res.StatusCode)
	}
	var event string
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxBody) // the whole reply is one line
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
			return json.Unmarshal([]byte(data), &n.reply)
		}
	}
	return fmt.Errorf("its stream ended early: %w", lines.Err())
}

// cancel ends the run, which must still be going on.
func (n *stream) cancel(ctx context.Context) error {
	client := Client{URL: n.service}
	answers, err := client.Send(ctx, &Request{Method: http.MethodDelete, Path: "/v1/executions/" + n.id}, nil)
	if err != nil {
		return fmt.Errorf("cancel a run: %w", err)
	}
	if answers[0].Status >= 300 {
		return fmt.Errorf("cancel a run: HTTP %d: %s", answers[0].Status, answers[0].Body)
	}
	if err := <-n.ended; err != nil {
		return err
	}
	if n.reply.Status != "cancelled" {
		return fmt.Errorf("it is %s, not cancelled", n.reply.Status)
	}
	return nil
}

// cancelled is cancel, and returns the run's seconds of CPU and of the clock.
func (n *stream) cancelled(ctx context.Context) (cpu, wall float64, err error) {
	err = n.cancel(ctx)
	return float64(n.reply.Usage.CPUMS) / 1000, float64(n.reply.Usage.WallMS) / 1000, err
}

// end sees that the run still goes on, and cancels it. A nil error says that nothing
// of it was lost.
func (n neighbour) end(ctx context.Context) error {
	before := n.events.Load()
	for deadline := time.Now().Add(patience); n.events.Load() == before; {
		select {
		case err := <-n.ended:
			return fmt.Errorf("the neighbour ended by itself: %s, %w", n.reply.Status, err)
		case <-time.After(settlePoll):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the neighbour has printed nothing for %v", patience)
		}
	}
	if err := n.cancel(ctx); err != nil {
		return fmt.Errorf("the neighbour: %w", err)
	}
	var want strings.Builder
	for i := range strings.Count(n.reply.Text, "\n") {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if want.Len() == 0 || n.reply.Text != want.String() {
		return fmt.Errorf("the neighbour printed %s", shown(n.reply.Text))
	}
	return nil
}
