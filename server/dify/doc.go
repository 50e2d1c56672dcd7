// Package dify speaks the protocol of the code interpreter wrapper that Dify agents
// are made for: a sandbox is created, code and commands are run in it, files come
// and go by URL, and it is stopped. A sandbox is a session of its caller's at the executor.
//
// The way of a call:
//
//  1. Its body is one JSON object of strings. Fields that are not known are passed
//     over, as the wrapper does; one that is missing, or no string, is a 422 whose
//     detail is a list, in the form that FastAPI has for it (errors.go).
//  2. Paths are taken relative and absolute, below /mnt/data and /workspace, which
//     are one folder (paths.go).
//  3. A run is interrupted RunTime after the request's arrival, and answered soon after,
//     whatever happens, as Dify gives up at 60 s. What it printed until then is in the
//     answer, with a sentence that says so (output.go).
//
// openapi.json describes the calls for Dify and its models, and is served with the
// address of the service. It has no references, unions or other constructs that
// Dify's importer does not read.
package dify
