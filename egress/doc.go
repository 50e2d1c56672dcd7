// Package egress lets programs that are not trusted reach what the operator
// allows, and nothing of the operator's own.
//
// It has three parts, each of use without the others: Guard knows which addresses
// are public, Dialer resolves a name once and connects to exactly an address that
// was checked, and Proxy is an HTTP proxy on a net.Listener, with limits for all
// the connections of one listener, a run.
//
// A request to the Proxy goes like this:
//
//  1. It names its destination: CONNECT host:port, or GET http://host/path.
//     Anything else is 400.
//  2. The host and port must be among those that the operator allows (Hosts),
//     by name or as an address, as they stand in the request; else 403.
//  3. The Dialer resolves the name. An address that is not public unicast by
//     IANA's registries, or that is this machine's, is refused when a socket is about to
//     connect to it, 403, unless the operator named the host as an exception. The
//     service's own port is refused even then.
//  4. If the operator has a Credential for the host, the Proxy reads the request, by a
//     TLS of its own, and signs it in: GET and HEAD alone.
//  5. Bytes go both ways, counted. After Options.MaxBytes, and at the end of the
//     run, every connection is closed.
//
// So a redirect is a new request, a name that resolves otherwise the second time is
// checked the second time, and no answer tells what a refused name resolves to.
package egress
