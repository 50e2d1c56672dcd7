// Package intake bounds what is taken in at one time: places for large requests, turns for
// decoding large texts, and a folder for what a request sends until it is run.
package intake
