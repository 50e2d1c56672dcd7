// Package adversarial sends notebox what it must take without harm, and looks
// whether it did.
//
// A case is a file in cases/, named by the id that it has in testdata/ids.txt: the
// input, the exact outcome, where it comes from. Adding a case is adding a file. A
// case with something that YAML cannot say names a check, a Go function of the
// tests. The settings of a case are flags of the service, so that only the guard
// that it is about can fire.
//
// What happens to each case and each of its variants:
//
//  1. A service with its settings runs: the real program, as a process, with real
//     containers. Cases with equal settings share one, one after another.
//  2. A neighbour begins a run of its own and is seen to have begun.
//  3. The requests are sent, in a session that is opened and closed for them if the
//     case says so, and each answer is held against what is expected.
//  4. The invariant is looked at: the neighbour printed what it had to; the next
//     run of 1+1 succeeds; no sandbox, process or file of the runs is left; the
//     service's memory, goroutines and open files are where they were.
//  5. Every answer is searched for the planted secrets (see Canary); at the end of
//     a service its log, its store and its metrics are too.
//
// Load, Client.Send and Expect.Failures stand alone, for who wants to mix cases
// with other load.
package adversarial
