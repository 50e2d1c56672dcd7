package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// day is how long a budget of CPU time lasts. Days are UTC's, and begin where
// time.Truncate puts them.
const day = 24 * time.Hour

// ledger is the CPU time that each owner has used on one day. A day's end forgets it.
type ledger struct {
	path string // "": it is not kept
	now  func() time.Time

	mu      sync.Mutex
	today   time.Time
	used    map[string]time.Duration // by owner
	changed bool                     // since it was written

	writing sync.Mutex
}

// page is the ledger's file.
type page struct {
	Day  string                   `json:"day"`    // 2006-01-02, UTC
	Used map[string]time.Duration `json:"cpu_ns"` // by owner
}

// openLedger reads what there is. A file that is damaged counts as none, since no
// caller is to be kept out for it; one that cannot be read is an error.
func openLedger(path string, now func() time.Time, log *slog.Logger) (*ledger, error) {
	l := &ledger{path: path, now: now, today: now().UTC().Truncate(day), used: map[string]time.Duration{}}
	if path == "" {
		return l, nil
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("CPU time used: %w", err)
	}
	var p page
	err = json.Unmarshal(raw, &p)
	written, notADay := time.Parse(time.DateOnly, p.Day)
	if err = errors.Join(err, notADay); err != nil {
		log.Warn("the file of the CPU time that API keys have used today is damaged: the day begins anew", "file", path, "error", err)
		return l, nil
	}
	l.today = written
	for owner, used := range p.Used {
		if used > 0 {
			l.used[owner] = used
		}
	}
	return l, nil
}

// turn begins a new day if it is one. A clock that is set back gives nobody a
// second budget; one that was days ahead, and is mended, keeps nobody out for them.
// l.mu is held.
func (l *ledger) turn() {
	today := l.now().UTC().Truncate(day)
	switch {
	case today.After(l.today):
		l.today, l.used, l.changed = today, map[string]time.Duration{}, true
	case l.today.Sub(today) > day:
		l.today, l.changed = today, true
	}
}

// usedBy returns what an owner has used, and when that is forgotten.
func (l *ledger) usedBy(owner string) (cpu time.Duration, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	return l.used[owner], l.today.Add(day)
}

// charge counts for the day on which it is called: a run's, when it ends.
func (l *ledger) charge(owner string, cpu time.Duration) {
	if cpu <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	l.used[owner] += cpu
	l.changed = true
}

// save writes the ledger, if it was changed since.
func (l *ledger) save() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	raw := l.page()
	if raw == nil {
		return nil
	}
	if err := writeFile(l.path, raw); err != nil {
		l.mu.Lock()
		l.changed = true
		l.mu.Unlock()
		return fmt.Errorf("CPU time used: %w", err)
	}
	return nil
}

// page returns what is to be written; nil if nothing is.
func (l *ledger) page() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" || !l.changed {
		return nil
	}
	raw, err := json.Marshal(page{l.today.Format(time.DateOnly), l.used})
	if err != nil { // strings and numbers: it cannot be
		return nil
	}
	l.changed = false
	return append(raw, '\n')
}
