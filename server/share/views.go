package share

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxViews bounds the pages that are sent at one time: each packs some megabytes anew.
	maxViews = 16
	// maxOfRun of them are of one run, so that who reads one page slowly, again and again, does
	// not keep all others from being seen.
	maxOfRun = maxViews / 2
	// viewTime is how long a page has at least to be read. If there is no place then, the oldest
	// view of the run that has most makes way.
	viewTime = 5 * time.Second
)

// views are those that are under way.
type views struct {
	mu  sync.Mutex
	all []*view // the oldest first
}

// view is a page that is being sent.
type view struct {
	run   string
	begun time.Time
	cut   func() // has the sending fail
	isCut bool   // to be read after its end
}

// begin returns a view of a run, or nil if there is no place for it.
func (v *views) begin(run string, cut func()) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := map[string]int{}
	for _, one := range v.all {
		of[one.run]++
	}
	// At its bound a run makes place for itself; else whichever run has most does.
	if full := of[run] >= maxOfRun; full || len(v.all) >= maxViews {
		most := run
		for other, n := range of {
			if !full && n > of[most] {
				most = other
			}
		}
		oldest := slices.IndexFunc(v.all, func(one *view) bool { return one.run == most })
		if oldest < 0 || time.Since(v.all[oldest].begun) < viewTime {
			return nil
		}
		v.all[oldest].isCut = true
		v.all[oldest].cut()
		v.all = slices.Delete(v.all, oldest, oldest+1)
	}
	begun := &view{run: run, begun: time.Now(), cut: cut}
	v.all = append(v.all, begun)
	return begun
}

// end is called for each view that has begun, also for one that was cut.
func (v *views) end(one *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.Index(v.all, one); i >= 0 {
		v.all = slices.Delete(v.all, i, i+1)
	}
}
