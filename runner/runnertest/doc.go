// Package runnertest is what every engine must pass, and an engine without
// containers to test the rest with.
//
//   - TestEngine is the conformance suite. An engine's own test brings a Harness,
//     which says how to make engines and how to see what they left.
//   - TestSessions is that of sessions, with a SessionHarness.
//   - Fake is a host whose sandboxes are goroutines that speak the sandbox
//     protocol over net.Pipe. It recognises the cells of the suite, can be taught
//     others, and can be told to misbehave (see Program).
//   - Sessions are the real ones, whose sandboxes are a Fake's.
//   - Recorder is a Sink that keeps everything.
package runnertest
