package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// state is the folder that one service has for itself.
type state struct {
	folder string
	lock   *flock.Flock
}

// openState makes the folder if it is missing and takes its lock, so that a
// second service there refuses to start instead of sharing an id.
func openState(folder string) (*state, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("another notebox uses the state folder %s: give this one another --state-dir", folder)
	}
	return &state{folder: folder, lock: lock}, nil
}

func (s *state) path(name string) string { return filepath.Join(s.folder, name) }

// serviceID returns the id that is kept here, made at the first call.
func (s *state) serviceID() (string, error) {
	raw, err := os.ReadFile(s.path("service-id"))
	if id := strings.TrimSpace(string(raw)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("service id: %w", err)
	}
	id := strings.ToLower(rand.Text())
	if err := os.WriteFile(s.path("service-id"), []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("service id: %w", err)
	}
	return id, nil
}

func (s *state) close() error { return s.lock.Unlock() }
