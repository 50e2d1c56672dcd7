// Package executor runs what callers want to be run, and stores what it leaves. It knows no
// protocol: whoever speaks one translates a request to an Order, and a Result to its own
// words. It composes the packages notebook, runner and storage, which do not know each
// other.
//
// The way of a run:
//
//  1. Begin checks an order, and makes a plan of it (plan.go): program, language, limits,
//     variables, names of files. Every refusal is a *problem.Error that names its field.
//     Nothing was fetched and nothing runs yet.
//  2. Start has the run go its way in a goroutine of its own. attempt (execution.go) takes its
//     steps: a place among its caller's runs, its files (inputs.go, kept.go, fetch.go), its
//     packages (dependencies.go), the runner.
//  3. While it runs, sink.go keeps its outputs for the case that the sandbox dies, and has
//     its files stored as they come. A Listener hears of each output when its images are
//     stored (teller.go).
//  4. result.go decodes the executed notebook, which is hostile, stores it and its images
//     (keeper.go), and makes the Result, in which all has a signed URL. What the store does
//     not take is an error of that file, image or notebook, never of the run.
//  5. Wait returns the Result as a Reply: JSON, in memory or in the store.
//
// A run is apart from its caller. One that is Detached, or has a Key, goes on without it, and
// its end is kept: package ledger has the records by which services on one store agree on who
// runs what (hold.go renews a lease), and which run a key stands for (join.go). Find and
// Cancel reach a run by its id, whichever service runs it.
//
// A run in a session (session.go) goes the same way, with the session in the runner's place.
//
// Package intake bounds what is taken in at one time, package problem has the errors that
// callers read, package fetch gets files by their URLs.
package executor
