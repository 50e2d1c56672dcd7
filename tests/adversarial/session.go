package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const (
	sessionsPath = "/v1/sessions"
	// inSession is what a path begins with that is below a session's own.
	inSession = "{session}"
)

// Session is one that is open on a trial's service.
type Session struct {
	ID     string
	client *Client
}

// Open opens a session with this body.
func (t *Trial) Open(ctx context.Context, body map[string]any) (*Session, error) {
	return openSession(ctx, t.Client, body)
}

func openSession(ctx context.Context, client *Client, body map[string]any) (*Session, error) {
	answers, err := client.Send(ctx, &Request{Path: sessionsPath, Fields: body}, nil)
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	var entry struct {
		ID string `json:"id"`
	}
	if a := answers[0]; a.Status != http.StatusCreated || json.Unmarshal(a.Body, &entry) != nil || entry.ID == "" {
		return nil, fmt.Errorf("open a session: HTTP %d: %s", a.Status, shown(string(a.Body)))
	}
	return &Session{entry.ID, client}, nil
}

// Path is where the session is, or what is below it.
func (s *Session) Path(below string) string { return sessionsPath + "/" + s.ID + below }

// Send sends a request to the session.
func (s *Session) Send(ctx context.Context, r Request) (*Answer, error) {
	answers, err := s.client.Send(ctx, &s.within([]Request{r})[0], nil)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// within returns the requests as those in this session.
func (s *Session) within(requests []Request) (out []Request) {
	for _, r := range requests {
		if below, ok := strings.CutPrefix(r.Path, inSession); ok {
			r.Path = s.Path(below)
		} else if r.ofRun() {
			fields := map[string]any{"session": s.ID}
			maps.Copy(fields, r.Fields)
			r.Fields = fields
		}
		out = append(out, r)
	}
	return out
}

// Close ends the session, and sees that it is over. That it is over already is as good.
func (s *Session) Close(ctx context.Context) error {
	for _, c := range []struct {
		method string
		want   []int
	}{{http.MethodDelete, []int{http.StatusNoContent, http.StatusGone}}, {http.MethodGet, []int{http.StatusGone}}} {
		a, err := s.Send(ctx, Request{Method: c.method, Path: inSession})
		if err != nil {
			return fmt.Errorf("close a session: %w", err)
		}
		known := false
		for _, status := range c.want {
			known = known || a.Status == status
		}
		if !known {
			return fmt.Errorf("%s of a session at its end: HTTP %d: %s", c.method, a.Status, shown(string(a.Body)))
		}
	}
	return nil
}

// tokens returns what the service keeps to find its sessions' sandboxes again.
func (s *Service) tokens() (out []string, err error) {
	names, err := filepath.Glob(filepath.Join(s.Folder, "state", "sessions", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // its session is over
		}
		var record struct {
			Token []byte `json:"token"`
		}
		if err := json.Unmarshal(raw, &record); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(record.Token) > 0 {
			out = append(out, string(record.Token))
		}
	}
	return out, nil
}
