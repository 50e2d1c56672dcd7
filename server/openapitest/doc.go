// Package openapitest holds a running service against an OpenAPI document, for tests: every
// example of every operation is sent, and the request and its answer are validated by
// kin-openapi.
//
//  1. Calls lists what there is to send: an operation once for each example of its body, and
//     once if it has no body. Parameters take their examples. A document that has no
//     example if one is needed fails the test.
//  2. An example names things that a service does not have, "run_01KAJ…". Service.Live
//     tells, before each call, which values stand for which.
//  3. Service.Send sends a call. The request must be as the document says, the answer below
//     400, and of a status, headers and a body as the document says.
package openapitest
