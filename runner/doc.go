// Package runner is what it is to run a notebook: in a sandbox that nobody used
// before and nobody will use again, or in one that is its owner's session.
//
// This package has the contracts alone. A run goes like this:
//
//  1. It takes a place among those that run, or waits for one, in fair turns between
//     owners, or is turned away (package admission, a decorator of a Runner).
//  2. A sandbox waits for it, or an Engine starts one; the program inside says that it is
//     ready (package pool, the Runner of single use).
//  3. The job goes in over the sandbox's one stream: the notebook, the limits, the input
//     files. Output events come out as they happen and go to the Sink. If the run has a
//     Network, connections of its programs come out among them (internal/conversation).
//  4. The outcome comes out: how it ended, the executed notebook, and each file
//     that is new, whose content goes to the Sink while it arrives.
//  5. Run returns: no process of the run is left. The sandbox is removed in the
//     background, and replaced.
//
// A session is a sandbox whose stream stays open after its first run (package session).
// Runs in it go one after another, each from the first step on; files are read and written
// beside them.
//
// Nothing that comes out of a sandbox is trusted: sizes are bounded before
// memory is taken for them, and there is a deadline on every wait. A user's
// code that fails is an Outcome; a Runner's error is a failure of the service.
package runner
