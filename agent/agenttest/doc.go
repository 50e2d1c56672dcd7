// Package agenttest is a model that says what a script has it say: a server on
// loopback that speaks OpenAI's Chat Completions and Responses and Anthropic's
// Messages, streamed and whole, with the errors of each. It is for tests: of package
// agent, and of whatever talks to a model through a client that its maker offers.
// It knows nothing and infers nothing; what passes against it has been seen to work
// with a script, not with a model.
//
// How it answers a request:
//
//  1. The path's end says which protocol it is: /chat/completions, /responses,
//     /messages. Whatever stands before it is allowed, as gateways have much there.
//  2. The request is checked as the real service would check it: a key is there, a
//     model is named, each tool call has its result and each result its call. What
//     is wrong is answered in the protocol's own shape of an error, and kept as a
//     failure, see Server.Failures.
//  3. The dialogue is found by the model's name and the last question, the turn by
//     how often the model has answered since that question. So it does not matter
//     how many conversations go on at a time, nor who retries.
//  4. The turn's faults come first, one for each request that reaches the turn: a
//     status, a connection that is cut within the answer.
//  5. The turn is said: text and tool calls, in pieces where a stream is asked for.
//
// The shapes are those that the two makers document for their APIs and that their
// official clients read.
package agenttest
