// Package runner is what it is to run a notebook: in a sandbox that nobody used
// before and nobody will use again, or in one that is its owner's session.
//
// A run goes like this:
//
//  1. Admission: it takes a place among those that run, or waits for one, in fair
//     turns between owners, or is turned away (Admission, a decorator of a Runner).
//  2. A Pool has a sandbox that waits, or an Engine starts one; the program inside
//     says that it is ready.
//  3. The job goes in over the sandbox's one stream: the notebook, the limits,
//     the input files. See internal/frame for the protocol.
//  4. Output events come out as they happen and go to the Sink. Where the run has
//     a Network, connections of its programs come out among them; see internal/channel.
//  5. The outcome comes out: how it ended, the executed notebook, and each file
//     that is new, whose content goes to the Sink while it arrives.
//  6. Run returns: no process of the run is left. The sandbox is removed in the
//     background, counted until it is gone, and replaced in the pool.
//
// A session is a sandbox whose stream stays open after its first run (LiveSessions):
//
//  1. It takes a sandbox of the Pool, and gets a kernel with its variables.
//  2. Runs in it go one after another; each that has its turn takes a place from the
//     Admission, and goes on as above from the third step.
//  3. Files are read and written at any time, over channels beside the runs.
//  4. It ends by its owner, its time, for want of room, or with its sandbox, and how is
//     remembered.
//
// Nothing that comes out of a sandbox is trusted: sizes are bounded before
// memory is taken for them, and there is a deadline on every wait. A user's
// code that fails is an Outcome; a Runner's error is a failure of the service.
package runner
