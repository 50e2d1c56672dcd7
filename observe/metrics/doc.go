// Package metrics counts and times what the service does, for Prometheus.
//
// It promises:
//
//  1. The other packages do not know of Prometheus: what they do is seen by
//     decorators (Runner, Store) and as a server.Observer, or asked for when
//     somebody reads (Sources).
//  2. Labels have values from short lists that are known when the service starts:
//     statuses, environments, phases, routes as they are written in the program.
//     Never a key, an owner, a path, a name or anything else that a caller chose.
//  3. All is in a registry of its own, so that two services in one process do not
//     meet, and no library adds to it.
//  4. docs/metrics.md names every metric; a test holds that.
package metrics
