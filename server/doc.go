// Package server is notebox's native HTTP API: it turns requests into runs and
// what is left of a run into replies. It composes the packages notebook, runner
// and storage, which know nothing of each other and nothing of HTTP.
//
// The way of a request to run code:
//
//  1. A request passes log, panic guard, pace (deadlines of a slow client),
//     browser rules and the API key, in that order; see routes.go.
//  2. One of three forms (JSON, multipart, raw code) is decoded into the same
//     fields. Nothing is taken silently: an unknown or doubled field, bytes
//     that are not UTF-8 and trailing data are errors. Files go to a folder of
//     the request's own, never through memory; it is removed at the end of the
//     run, however that comes.
//  3. The fields are checked into a runner.Spec: language, limits, environment
//     variables, input names. Every refusal names its field. URLs among the
//     inputs are fetched, last, when all else is known to be right. Up to here
//     only Config.MaxIntake requests are at one time.
//  4. The runner runs the notebook. While it does, the outputs so far are kept,
//     for the case that the sandbox dies, and files go straight to the store.
//     Where somebody listens, each output is decoded, its images are stored, and
//     it is told, in order; a stream of events is such a listener.
//  5. The executed notebook, which is hostile, is decoded; the notebook and the
//     images that are not stored yet are; the reply names everything with a
//     signed URL.
//
// Beside it, its result.json is stored when the client has the reply. What the store
// does not take is an error of that file, image or notebook, never of the run; see
// keeper.go. Files that are kept for later runs (upload.go) go from the client to the
// store, and from the store to the sandbox. retention.go has both removed in time.
//
// The run is apart from its request (execution.go): one that is asynchronous or has
// an Idempotency-Key goes on without a client, and its end is stored. What services
// on one store must agree on, they agree on by records there: lease.go says who
// runs what, idempotency.go which execution a key stands for, sweep.go forgets.
//
// Sessions (session.go) are sandboxes that their owner keeps: opened by session_open.go,
// with a request's fields and inputs as above. A run in one is planned by session_run.go
// and goes the way of any run from there, with the session in the runner's place; its
// bash commands are cells of a notebook too. Files of a session go through without a
// stop: session_transfer.go streams them between client and sandbox, session_files.go
// has the rest. All that is known of a session, package runner knows.
//
// What the user's code does is a status in a reply with HTTP 200. Errors are
// application/problem+json (RFC 9457): 4xx for the caller's, 5xx for ours, and
// the cause of a 5xx goes to the log, never to the caller. Code, data, keys and
// signatures are never logged.
package server
