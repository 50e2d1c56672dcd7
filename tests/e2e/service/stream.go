package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Events is a run's stream, read as it comes.
type Events struct {
	t     *testing.T
	lines *bufio.Scanner
}

// Event is one of them; a comment has no name.
type Event struct {
	Name, Data string
	At         time.Time
}

// Stream runs a request and returns its events.
func (s *Service) Stream(ctx context.Context, t *testing.T, request map[string]any) *Events {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/execute", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 64<<20)
	return &Events{t, lines}
}

// Next returns the next event; ok is false at the end.
func (e *Events) Next() (next Event, ok bool) {
	e.t.Helper()
	for e.lines.Scan() {
		switch field, value, _ := strings.Cut(e.lines.Text(), ": "); {
		case field == "event":
			next.Name = value
		case field == "data":
			next.Data = value
		case value != "": // a comment
			next.Data = value
		case next.Data != "":
			next.At = time.Now()
			return next, true
		}
	}
	require.NoError(e.t, e.lines.Err())
	return Event{}, false
}
