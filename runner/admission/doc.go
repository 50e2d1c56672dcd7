// Package admission is a decorator of a Runner that passes no more to it than that can carry.
//
//  1. A run takes a place among those that run, or waits for one, or is turned away with
//     the time to come back (holdtime.go).
//  2. A place that is given back goes to the owner with the fewest places among those that
//     wait, see fairQueue.
//  3. With several owners, an owner waits in no more places than it leaves free.
//
// Other things than runs take places in the same turns by Enter.
package admission
