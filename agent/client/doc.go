// Package client runs an agent's code on a notebox over HTTP: it is an agent.Executor,
// and agent.Sessions where the notebox has sessions.
//
//  1. A run is a form to POST /v1/execute, with the code and, streamed from where they
//     are, the files.
//  2. The answer is asked for as events where somebody listens to the output, else as
//     JSON. Images come as links.
//  3. What the code did is a result. A code that notebox does not take, and packages
//     that it cannot install, are a *tool.CallError, for the model; a session that is over
//     is agent.ErrNoSession; and all else that it refuses an *Error. It is asked again when
//     it is full, within bounds.
package client
