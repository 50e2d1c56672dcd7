// Package faults holds tests alone: the faults G1 to G14 that notebox has to take,
// each by its id in the test's name. What a test breaks is its own:
//
//  1. The service is the real program as a process, which is killed, stopped and
//     ended by signals.
//  2. The Docker daemon is one that the test has started beside the machine's, on
//     a socket, with folders and a cgroup of its own; it is killed and stopped too.
//     Its sandboxes run standin, a small static program that speaks the protocol.
//     If the harness itself matters, the machine's daemon and the real image
//     are used.
//  3. The disks are tmpfs of some megabytes, which are filled.
//  4. The clock and the store's delays are injected, into the server as a library.
//
// A daemon and a file system of one's own need root and Linux; TestMain says so
// if that is missing. Whatever is left of them at the end fails the tests.
//
// Faults that are told nearer to what they break have their tests there:
// runner/docker (G5), server (G12), tests/e2e/operation (G13).
package faults
