// Package server is notebox's native HTTP API: it turns requests into runs and
// what is left of a run into answers. Package executor runs them.
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
//  3. execute.go makes an executor.Order of it and begins the run, which package executor
//     knows all about: up to the reply, which this package sends.
//
// What a handler writes is put aside and sent as its client reads it: outgoing.go.
//
// Sessions (session.go) are sandboxes that their owner keeps: opened by session_open.go,
// with a request's fields and inputs as above. Files of a session go through without a
// stop: session_transfer.go streams them between client and sandbox, session_files.go
// has the rest. All that is known of a session, package runner knows.
//
// The calls of Dify's code interpreter tool (package dify) are runs and sessions in other
// words: dify.go and its neighbours give that package sandboxes for each request.
//
// What the user's code does is a status in a reply with HTTP 200. Errors are
// application/problem+json (RFC 9457): 4xx for the caller's, 5xx for ours, and
// the cause of a 5xx goes to the log, never to the caller. Code, data, keys and
// signatures are never logged.
package server
