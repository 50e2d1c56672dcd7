// Package access is who may call, and how much. It knows nothing of HTTP.
//
// What it promises:
//
//   - A key itself is never kept, logged or part of an error: only its SHA-256 is.
//   - A caller has an owner, a short name under which everything that it makes is
//     kept. With a named line in the file, a new secret under that name is the same
//     owner; of a plain key the owner follows from the key.
//   - A key that was removed from the file is refused within seconds. What it had
//     running ends by itself, within its time limit.
//   - A file that is broken, empty or gone changes nothing: the keys before it stay.
//
// How a request goes through it:
//
//  1. Keys.Caller finds who presents a key, by its hash.
//  2. Caller.Request counts the request against requests-per-minute.
//  3. Caller.MayUse and Caller.MayNetwork say what a run may be.
//  4. Caller.BeginRun takes one of runs-at-once, if the day's CPU time is not spent.
//     Caller.MayBeginRun says so beforehand, before anything was sent.
//  5. Run.Charge adds what the run took to the day, Run.End gives its place back.
//
// Each refusal is a *Refusal: its reason, a message for the caller, and when to come
// back. A nil *Caller is one without a key on a service without keys: it may do
// everything. Limits are those of one service process, or of all that have the same
// Store (Options.Store): then this process holds its part of each beside that, and goes by it
// while the store does not answer.
//
// Options.UsageFile keeps the CPU time of the day over restarts; Keys.Watch follows
// the keys file and writes that one.
package access
