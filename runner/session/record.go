package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"notebox/runner"
)

const (
	// recordVersion of what is written; another's is not read.
	recordVersion = 1
	// maxRecord is more than a record has, bytes: a note of 4 KiB and some names.
	maxRecord = 128 << 10
	// maxGoneRecords is how many ends of sessions a later process is told of: those
	// of hours, in a file of some hundred bytes each.
	maxGoneRecords = 1000
	recordSuffix   = ".json"
)

// savedSession is what a later process has to know of a session: to go on with it, or to
// say how it ended. It has a secret in it, the token, and nothing of what ran.
type savedSession struct {
	Version        int               `json:"version"`
	ID             string            `json:"id"`
	Owner          string            `json:"owner"`
	Environment    string            `json:"environment"` // its name
	Created        time.Time         `json:"created"`
	Expires        time.Time         `json:"expires"` // about; the sandbox's own clock is what counts
	Idle           time.Duration     `json:"idle_ns"`
	Network        bool              `json:"network"`
	Limits         runner.Limits     `json:"limits"`
	Note           map[string]string `json:"note,omitempty"`
	KernelRestarts int               `json:"kernel_restarts"`
	Sandbox        string            `json:"sandbox,omitempty"` // the name to adopt by
	Token          []byte            `json:"token,omitempty"`
	Gone           *goneRecord       `json:"gone,omitempty"` // nil: it is open
}

// goneRecord is how a session ended.
type goneRecord struct {
	Reason runner.GoneReason `json:"reason"`
	At     time.Time         `json:"at"`
}

// records are files in one folder, a session each. If that is "", nothing is
// recorded.
type records struct {
	folder string
	log    *slog.Logger

	mu   sync.Mutex // of all writing
	gone []goneFile // the oldest first
}

// goneFile is a record of an end.
type goneFile struct {
	name string
	at   time.Time
}

// write records what now returns. It calls now under its lock, so that the last record is
// the newest.
func (r *records) write(now func() savedSession) error {
	if r.folder == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record := now()
	record.Version = recordVersion
	name := record.file()
	r.gone = slices.DeleteFunc(r.gone, func(g goneFile) bool { return g.name == name })
	raw, err := json.Marshal(record)
	if err == nil {
		err = writeRecord(r.folder, name, raw)
	}
	if err != nil {
		return fmt.Errorf("record a session: %w", err)
	}
	if record.Gone != nil {
		r.gone = append(r.gone, goneFile{name, record.Gone.At})
		r.prune()
	}
	return nil
}

// prune removes the records of ends that are too old, or too many. The lock is held.
func (r *records) prune() {
	for len(r.gone) > 0 && (len(r.gone) > maxGoneRecords || time.Since(r.gone[0].at) > goneFor) {
		r.remove(r.gone[0].name)
		r.gone = r.gone[1:]
	}
}

// forget removes a record.
func (r *records) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(name)
}

// remove does the same. The lock is held.
func (r *records) remove(name string) {
	if err := os.Remove(filepath.Join(r.folder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("a record of a session cannot be removed", "file", name, "error", err)
	}
}

// load returns what there is, ends in their order. What is no record is removed: nobody
// could do anything with it.
func (r *records) load() []savedSession {
	if r.folder == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, err := os.ReadDir(r.folder)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.log.Error("the records of sessions cannot be read: those that were open are lost", "error", err)
		}
		return nil
	}
	var all []savedSession
	for _, e := range entries {
		unfinished := strings.HasPrefix(e.Name(), ".") // its writer was killed
		if !e.Type().IsRegular() || !unfinished && !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		record, err := readRecord(r.folder, e.Name())
		if err == nil {
			all = append(all, record)
			continue
		}
		if !unfinished {
			r.log.Error("a record of a session cannot be read: it is removed, and the session is lost", "file", e.Name(), "error", err)
		}
		r.remove(e.Name())
	}
	slices.SortFunc(all, func(a, b savedSession) int { return a.since().Compare(b.since()) })
	r.gone = nil
	for _, record := range all {
		if record.Gone != nil {
			r.gone = append(r.gone, goneFile{record.file(), record.Gone.At})
		}
	}
	r.prune()
	return all
}

// file is the record's name in its folder.
func (s savedSession) file() string {
	sum := sha256.Sum256([]byte(s.Owner + "\x00" + s.ID))
	return hex.EncodeToString(sum[:]) + recordSuffix
}

// since is when the record began to be as it is.
func (s savedSession) since() time.Time {
	if s.Gone != nil {
		return s.Gone.At
	}
	return s.Created
}

func readRecord(folder, name string) (record savedSession, err error) {
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return record, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err == nil {
		err = json.Unmarshal(raw, &record)
	}
	switch {
	case err != nil:
		return record, err
	case record.Version != recordVersion:
		return record, fmt.Errorf("version %d, not %d", record.Version, recordVersion)
	case record.file() != name:
		return record, errors.New("it is another session's")
	}
	return record, nil
}

// writeRecord writes a file of mode 0600 so that a reader finds the old one or the whole
// new one, also after a crash.
func writeRecord(folder, name string, content []byte) (err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(folder, name))
}
