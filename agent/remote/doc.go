// Package remote runs an agent's code on a notebox over HTTP: it makes an agent.Sessions
// of a client.Client.
//
// What the code did is a result. A code that notebox does not take, and packages that it
// cannot install, are a *tool.CallError, for the model. A session that is over is
// agent.ErrNoSession. All else is the client's error.
package remote
