package access

import (
	"context"
	"time"
)

// Lease is how long a place, and a service's word that it is there, hold at a Store without
// being renewed: of a service that was killed, all places are free after it. It outlives
// two renewals that fail.
const Lease = 15 * time.Second

// Store is where the services of a deployment count together; package access/redis has one.
// Time is the store's own. Methods are called from many at one time, end with ctx, and their
// errors may be logged: they show no password.
type Store interface {
	// Request takes one of an owner's perMinute requests from a bucket as large as a minute,
	// or returns when there will be one.
	Request(ctx context.Context, owner string, perMinute int) (wait time.Duration, err error)
	// Begin takes a place for Lease, if there is one and the day's CPU time is not spent.
	Begin(ctx context.Context, a Asked) (Told, error)
	// Report tells what a service has, and hears of the others.
	Report(ctx context.Context, r *Report) (*Heard, error)
}

// Asked is what a run wants of a Store.
type Asked struct {
	Owner, Place string
	RunsAtOnce   int           // 0: no place is taken
	CPUPerDay    time.Duration // 0: not looked at
}

// Told is a Store's answer. Neither Full nor Spent: the place is taken.
type Told struct {
	Full, Spent bool
	CPU         time.Duration // that all services have charged on this day, if it was looked at
	Taken       int           // places, this one too, if it was asked for
	Now         time.Time
}

// Report is what a service has to say, all in one call.
type Report struct {
	Service string
	Leaves  bool      // it is there no more
	Day     time.Time // to which CPU belongs; the store drops that of another day
	Owners  map[string]*Account
}

// Account is what a service has of one owner. Saying it twice counts once.
type Account struct {
	Held, Ended []string // places: each of Held is taken for Lease again, each of Ended is free
	// CPU is all that this service has charged on the day; 0 says nothing.
	CPU time.Duration
	// Left is the most that may be left of PerMinute requests, after an outage: what this
	// service has left of its part, for all parts.
	Left, PerMinute int
}

// Heard is a Store's answer to a Report.
type Heard struct {
	Now      time.Time
	Services []string // that are there, the reporting one among them
	New      bool     // the store did not know this service: what it was told before may be lost
	// CPU that all services have charged on this day, for each owner of the Report.
	CPU map[string]time.Duration
}

// Sharing is how the services of a deployment hold limits together.
type Sharing struct {
	Store    string `json:"store"`    // SharingOK or SharingDown
	Services int    `json:"services"` // that were there when the store answered last
	Calls    int64  `json:"-"`        // of the store
	Failed   int64  `json:"-"`        // of these
}

// The states of a store.
const (
	SharingOK   = "ok"
	SharingDown = "down" // this service holds its part of each limit by itself
)
