// Package mcp offers notebox to clients of the Model Context Protocol, with the
// protocol's official SDK. What its tools call is a Service: Local, the executor of this
// process, or API, a notebox elsewhere, which package client reaches. Keys, limits and what
// is stored are those of the native API in both.
//
//  1. NewServer asks what languages there are, and makes a tool of each, run_python
//     and the like, and the tools of sessions and their files.
//  2. A call of a tool becomes a call of its caller's Service, under the key that came with
//     it. What runs is followed as it happens, for progress notifications; a cancelled call
//     ends its run.
//  3. A result is text for the model, images as parts, images and files as links, and
//     structured content, in which nothing is base64.
//  4. NewHandler serves it as streamable HTTP, with a server for each owner of a key, so
//     that nobody sees another's MCP session. A program that is started by its client
//     serves it over stdin and stdout, see notebox mcp.
package mcp
