package adversarial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	neighbourStep = 50 * time.Millisecond
	// neighbourMost bounds how long a neighbour goes on: attacks show within that.
	neighbourMost = 3 * time.Second
	// neighbourLimit is its own time limit, which nothing but a hang reaches.
	neighbourLimit = 60 * time.Second
)

// neighbour is a run of somebody else on the same service.
type neighbour struct {
	lines int
	reply chan error
}

// beginNeighbour starts a run that prints a line every neighbourStep for d, and
// returns when the first line has come. A nil error of wait says that all lines came.
func beginNeighbour(ctx context.Context, service string, d time.Duration) (*neighbour, error) {
	n := &neighbour{lines: int(min(d, neighbourMost)/neighbourStep) + 1, reply: make(chan error, 1)}
	body, err := json.Marshal(map[string]any{
		"timeout": neighbourLimit.Seconds(),
		"code": fmt.Sprintf("import time\nfor i in range(%d):\n    print('line', i, flush=True)\n    time.sleep(%v)",
			n.lines, neighbourStep.Seconds()),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
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
		n.reply <- n.follow(req, begun)
	}()
	select {
	case <-begun:
		return n, nil
	case err := <-n.reply:
		return nil, fmt.Errorf("the neighbour did not begin: %w", err)
	}
}

// follow reads the events of the run, and holds its reply against what it printed.
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
	seen := false
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && event == "output" && !seen {
			seen = true
			close(begun)
		}
		if ok && (event == "done" || event == "error") {
			return n.check(data)
		}
	}
	return fmt.Errorf("its stream ended early: %w", lines.Err())
}

func (n *neighbour) check(data string) error {
	var r Reply
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		return err
	}
	var want strings.Builder
	for i := range n.lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if r.Status != "ok" || r.Text != want.String() {
		return fmt.Errorf("it is %s and printed %s", r.Status, shown(r.Text))
	}
	return nil
}

// wait returns when the run has ended.
func (n *neighbour) wait() error {
	if err := <-n.reply; err != nil {
		return fmt.Errorf("the neighbour: %w", err)
	}
	return nil
}
