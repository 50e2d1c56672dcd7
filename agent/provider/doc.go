// Package provider reaches models for package agent, each by the official client of
// its maker:
//
//   - Chat Completions, which nearly every server of models speaks, and Responses, with
//     github.com/openai/openai-go/v3
//   - Anthropic's Messages with github.com/anthropics/anthropic-sdk-go
//
// How a model is found and asked:
//
//  1. Settings say which; FromEnvironment fills in what they leave open from the
//     variables that the makers' own tools use (OPENAI_API_KEY, OPENAI_BASE_URL,
//     ANTHROPIC_API_KEY, CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID).
//  2. Open makes the Provider. It reads no variables, so that a key is sent only to
//     the address that it was given with.
//  3. Each turn is a request of its own, with the whole conversation in it: nothing is
//     stored at the provider. What must come back as it was, a model's reasoning, is
//     kept in Message.Opaque.
//  4. Answers are streamed. A stream counts only when its end has come: one that breaks
//     off is an error, and so is what the provider says in its middle.
//  5. What may pass is tried again: 408, 409, 429, 5xx, connections that fail or break
//     off; later each time, or when Retry-After says. See Retry.
package provider
