// Package redis is an access.Store at a Redis 5 or newer, or a Valkey.
//
// What is there, under a prefix that is the deployment's own; OWNER is the hash of an API
// key's name, or of a plain key's hash. No key, code or text of a caller is there.
//
//	PREFIX:services          services that are there, by when their word ends
//	PREFIX:{OWNER}:requests  what is left of requests-per-minute, and when that was so
//	PREFIX:{OWNER}:runs      places of runs, by when their lease ends
//	PREFIX:{OWNER}:cpu       the day, and what each service has charged on it
//
// Each call is one script, so that nobody comes between its reading and its writing, and
// takes the time from the server: services' clocks do not count. All keys expire. A service
// says the sum of what it has charged, never a difference: said twice, it counts once, and a
// server that has lost its data hears it again.
package redis
