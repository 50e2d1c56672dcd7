// Package tool is code execution as a function that a language model calls: its
// definition, the reading of a call, and the message that goes back, in the notations
// of the providers. It sends nothing itself, and knows no provider's client.
//
//  1. Definition gives what a request to the model has in its list of tools. Its
//     description is made of an About, and short; a call with the argument about is answered
//     with the rest, by Told: what is installed and can be, how long a run may take, notes.
//  2. Parse reads a call as the model emitted it, whole; ParseArguments reads the
//     arguments alone. Models break the form of a call more often than their code, so
//     both mend what can be mended in one way only, see arguments.go. What cannot is a
//     *CallError, whose text tells the model what was wrong and what is wanted.
//  3. Whoever has the Call runs it.
//  4. Message makes of the Result what is sent back: text within a budget of tokens,
//     images and files by their URLs or as parts, and for a run that failed what is
//     needed to correct it. Refusal makes the same of an error.
package tool
