// Package server is notebox over HTTP. It has what all protocols share: who may call, how
// fast a client must be, how an answer is sent, health, documents. Each protocol is a folder:
//
//   - native: the API of /openapi.json
//   - functiontool: the tool for models
//   - ask: questions, which an agent answers
//   - dify: the calls of Dify's code interpreter tool
//   - mcp: the Model Context Protocol
//
// A protocol translates a request to an executor.Order and an executor.Result to its own
// words. It is made of a web.Kit, and gives its routes; New has one line for each.
//
// The way of a request:
//
//  1. It passes the connection's guard, trace, log, pace (deadlines of a slow client), the
//     sending of what is written, panic guard, browser rules and the API key, in that order
//     (routes.go).
//  2. The protocol's handler reads it. Nothing is taken silently: an unknown or doubled
//     field, bytes that are not UTF-8 and trailing data are errors (package body). Files go
//     to a folder of the request's own, never through memory.
//  3. Package executor runs what it asks for.
//  4. What the handler writes is put aside, and sent as its client reads it (package web,
//     outgoing.go).
//
// What the user's code does is a status in a reply with HTTP 200. Errors are
// application/problem+json (RFC 9457): 4xx for the caller's, 5xx for ours, and
// the cause of a 5xx goes to the log, never to the caller. Code, data, keys and
// signatures are never logged.
package server
