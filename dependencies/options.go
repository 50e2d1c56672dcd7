package dependencies

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"notebox/runner"
	"notebox/runner/admission"
)

// Network is what an installer reaches.
type Network interface {
	runner.Network
	// Reach says why the registry's hosts cannot be reached now, or nil. It takes two
	// seconds at most.
	Reach(ctx context.Context) error
}

// Options are what Layers is made of. Runner, Images, Network, Notebook and TempDir must
// be set.
type Options struct {
	// Runner runs installers, which are the caller's runs like others.
	Runner runner.Runner
	// Installs bounds the installers at one time. An installation keeps its place until its
	// layer is made, as it has an archive in TempDir for so long. nil: nothing does.
	Installs *admission.Admission
	Images   Images
	// Network returns what reaches these hosts, each "host:port", and nothing else.
	Network func(hosts []string) (Network, error)
	// Notebook returns a notebook of one cell of Python.
	Notebook func(code string) ([]byte, error)
	// Settings are files with the registry's settings, by name: pip.conf, npmrc and
	// sources.list. They go into installers' sandboxes, and have no credentials: see Separate.
	Settings map[string][]byte

	Policy
	Limits    runner.Limits // of an installer; Timeout, Output, Files and FileSize are set by Layers
	Timeout   time.Duration // of one installation; 0 is DefaultTimeout
	MaxSize   int64         // bytes of one layer; 0 is DefaultMaxSize
	MaxLayers int           // that are kept; 0 is DefaultMaxLayers
	MaxTotal  int64         // bytes of all that are kept; 0 is DefaultMaxTotal
	// MaxWaiting are the requests that wait at one time, those whose set is being installed
	// included; 0 is DefaultMaxWaiting. See ShareWaiting.
	MaxWaiting int

	// Shared is that other versions of this program use the same layers: those of images that
	// this one does not start from stay until there is no room.
	Shared bool
	// HostsFile keeps what installers have said of their hosts over restarts: else the first
	// set after one waits for that, also to be told that the registry is away. "": nowhere.
	HostsFile string

	// Forget ends the sandboxes that wait for a layer's image, which is about to be
	// removed; may be nil.
	Forget func(image string)

	TempDir string   // a folder of Layers alone, for archives under way
	Observe Observer // may be nil
	Log     *slog.Logger
}

// settings are all that decides where packages come from: names and contents.
func (o *Options) settings() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		all = append(all, name, string(o.Settings[name]))
	}
	return all
}

// Defaults of Options.
const (
	DefaultTimeout   = 5 * time.Minute // a large set over a slow line; a caller rarely waits longer
	DefaultMaxSize   = 1 << 30         // a deep-learning framework for CPUs, with what it needs
	DefaultMaxLayers = 20              // as many projects as share a service
	DefaultMaxTotal  = 10 << 30        // what a host has to spare beside the languages' images
	DefaultInstalls  = 2               // at one time: each wants a core and its memory

	DefaultMaxWaiting = 40 // requests, which hold their files meanwhile
)

const (
	// lookEvery is how long it is believed that an image that was there still is.
	lookEvery = 10 * time.Second
	// touchEvery is how often the daemon is told that a layer is used, for the time
	// after a restart.
	touchEvery = time.Hour
	// imagesTime bounds one call of the daemon, a commit excepted.
	imagesTime = 20 * time.Second
	// commitTime bounds a commit: a gigabyte on a slow disk.
	commitTime = 2 * time.Minute
	// forgetTime bounds the wait for sandboxes of a layer that Forget has ended.
	forgetTime = 2 * time.Second
	// staysTime is how long a layer that could not be removed is left alone: its user is
	// none of ours, or a session of an earlier process, and lives on for a while.
	staysTime = time.Minute
	// maxNames of one image; the one that was not used for the longest time goes first.
	maxNames = 100
)

// Observer is told what installations came to, by one of Results.
type Observer func(result string)

// The results.
const (
	resultCached = "cached" // it was there before
	resultOK     = "ok"
	resultFailed = "failed" // it cannot be had, or nobody waited for it
	resultError  = "error"  // of the service, or of the registry
)

// Results are all there are.
func Results() []string { return []string{resultCached, resultOK, resultFailed, resultError} }
