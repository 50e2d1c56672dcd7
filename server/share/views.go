package share

import (
	"cmp"
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
	// viewTime is how long a page has at least to be read, unless an owner with fewer views has no
	// place. The oldest view of the owner with most makes way.
	viewTime = 5 * time.Second
)

// views are those that are under way.
type views struct {
	mu  sync.Mutex
	all []*view // the oldest first
}

// view is a page that is being sent.
type view struct {
	of    viewed
	begun time.Time
	cut   func() // has the sending fail
	isCut bool   // to be read after its end
}

// viewed is whose run is looked at. Without API keys there is one owner, so runs count then.
type viewed struct{ owner, run string }

func (v viewed) holder() string { return cmp.Or(v.owner, v.run) }

// begin returns a view, or nil if there is no place for it.
func (v *views) begin(of viewed, cut func()) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	ofRun, held := 0, map[string]int{}
	for _, one := range v.all {
		held[one.of.holder()]++
		if one.of.run == of.run {
			ofRun++
		}
	}
	if full := ofRun >= maxOfRun; full || len(v.all) >= maxViews {
		mine, most := of.holder(), of.holder()
		for other, n := range held {
			if n > held[most] {
				most = other
			}
		}
		oldest := slices.IndexFunc(v.all, func(one *view) bool {
			if full { // then it makes place for itself
				return one.of.run == of.run
			}
			return one.of.holder() == most
		})
		// Who has clearly more than who asks makes way at once: those who come again and again
		// would take each place that is free.
		unfair := !full && held[most] > held[mine]+1
		if oldest < 0 || !unfair && time.Since(v.all[oldest].begun) < viewTime {
			return nil
		}
		v.all[oldest].isCut = true
		v.all[oldest].cut()
		v.all = slices.Delete(v.all, oldest, oldest+1)
	}
	begun := &view{of: of, begun: time.Now(), cut: cut}
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
