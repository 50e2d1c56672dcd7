package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// sessionsPath is where sessions are opened.
const sessionsPath = "/v1/sessions"

// openSessions opens one for each case on the warm service, so that no case finds
// what another has left in the kernel.
func (b *bench) openSessions(ctx context.Context) error {
	b.callers[wayStep] = map[string]*caller{}
	for _, c := range b.cases {
		id, err := b.warm.openSession(ctx)
		if err != nil {
			return err
		}
		b.sessions = append(b.sessions, id)
		if b.callers[wayStep][c.name], err = newCaller(b.warm.URL, c, id); err != nil {
			return err
		}
	}
	return nil
}

// closeSessions comes before the loads, which are for the sandboxes of single runs.
func (b *bench) closeSessions(ctx context.Context) (err error) {
	for _, id := range b.sessions {
		_, e := b.warm.call(ctx, http.MethodDelete, sessionsPath+"/"+id, nil, http.StatusNoContent)
		err = errors.Join(err, e)
	}
	b.sessions = nil
	return err
}

func (s *service) openSession(ctx context.Context) (id string, err error) {
	raw, err := s.call(ctx, http.MethodPost, sessionsPath, []byte("{}"), http.StatusCreated)
	if err != nil {
		return "", err
	}
	var session struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &session); err != nil || session.ID == "" {
		return "", fmt.Errorf("POST %s: no session in %.500s: %w", sessionsPath, raw, err)
	}
	return session.ID, nil
}

// call sends JSON and returns the answer, which must have that status.
func (s *service) call(ctx context.Context, method, path string, body []byte, want int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, res.Status, raw)
	}
	return raw, err
}
