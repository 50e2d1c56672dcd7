// Package share serves the pages of runs that their owners show to others.
//
//  1. POST /v1/executions/{id}/share makes a page of what the store has of an owner's run, once,
//     and a signed link to it; DELETE ends all links to it. Both are the owner's.
//  2. GET /r/{id} by such a link is the page, as page.Record writes it: in a browser with an
//     origin of its own and without a network, as JSON for the page at GET /, which runs its
//     code again.
//  3. GET /r/{id}/files/… and /images/… by the same query are what the run left, so that they
//     end with the page.
//  4. What chats show of a link (Open Graph) is in the page's head; see head.go.
//
// The link ends with its signature, as other links do, with the run's files, or when its owner
// revokes it: whichever is first. The store is asked each time, so that this holds at once for
// all services on it.
package share
