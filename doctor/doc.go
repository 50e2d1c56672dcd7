// Package doctor finds out whether code can run on this machine, and what to mend if not.
//
//  1. A Check looks at one thing: the daemon, its clock, an image, the store, a folder, a
//     port, a file of keys. It returns a Finding: ok, a warning or wrong, with words for
//     people and what to do.
//  2. Run makes the checks one after the other. What needs another thing that is wrong is
//     skipped, so that one fault is one line to mend.
//  3. The last checks are the truth: one has a cell started and looked at from outside for
//     each of its walls, or has a program in a container tell what it sees of them; one runs a
//     program in a sandbox and reads what it prints.
//
// Nothing of a service that runs here is disturbed: no lock is taken, the sandboxes have a
// service id of their own, and what a check makes, it removes.
package doctor
