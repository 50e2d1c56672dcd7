// Package pool has sandboxes of an Engine ready, and is the Runner of single use: each run
// gets one that nobody used before and nobody will use again.
//
//  1. A stock of an environment is filled ahead, up to its target, which grows while runs
//     find none warm, and falls when they do not come (fill.go). Environments that runs
//     have asked for lately have small stocks too (byuse.go).
//  2. A run takes the oldest that is warm, claims one that is being started, or has one
//     started (Pool.take). If there is no room, it waits for that, and a sandbox that waits
//     for others is ended.
//  3. The run goes over the sandbox's conversation (run.go).
//  4. The sandbox is removed in the background, counted until it is gone, and replaced.
//
// Sessions take their sandboxes from it as well, and give them back (sessions.go).
package pool
