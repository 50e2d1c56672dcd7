// Package session has sandboxes whose stream stays open after their first run.
//
//  1. Sessions.Open takes a sandbox of the Pool and makes it the session's (open.go). If
//     room is short, a session that is idle ends for it (share.go).
//  2. Runs in it go one after another (queue.go). One that has its turn takes a place from
//     the Admission, and its job goes over the session's conversation (run.go).
//  3. Files are read and written at any time, over channels beside the runs (files.go).
//  4. It ends by its owner, its time, for want of room, or with its sandbox (end.go), and
//     how is remembered (gone.go).
//  5. What a later process of the service has to know is recorded (record.go), so that it
//     goes on with the sessions (restore.go).
package session
