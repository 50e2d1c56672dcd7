// Package peers makes several services behind one address look like one: a call for a
// session that another service has is passed on to that service.
//
//  1. A session's id names its service, see id.go: under a MAC, so that only services with
//     the shared secret make ids, and not by its address, which is nobody's business.
//  2. Sessions is a decorator of runner.Sessions. A session that is not here is a
//     *runner.ElsewhereError if its id is authentic and its service is among the peers'
//     addresses, and a *runner.GoneError if that service is not there any more.
//  3. The server passes a request that ended with that error on, by Pass: as it came, in
//     bounded memory, to an address of the peers' and to no other.
//  4. A request that is passed on has a header of its own (hop.go), by which the other service knows
//     that it comes from a peer. It passes no such request on again.
//
// Whose session it is, and what the caller may do, is checked at both services: the API key
// goes along.
package peers
