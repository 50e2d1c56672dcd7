// Command bench measures what notebox's callers wait for and what a run costs
// its machine, against the way without notebox. It is what `make bench` runs:
//
//	go run ./bench -notebox bin/notebox
//
// Five ways to run one piece of code, on one machine and one image:
//
//	a  a fresh `docker run --rm` of `jupyter nbconvert --to notebook --execute` on a file
//	b  notebox over HTTP, a sandbox waiting (--pool-size N)
//	c  notebox over HTTP, no sandbox waiting (--pool-size 0)
//	d  notebox over HTTP, a step in a session that is open
//	e  as b, in cells (--isolation cell)
//
// It goes like this:
//
//  1. The machine is described, and its CPU time while nothing runs is read. While
//     something else keeps it busy, nothing begins.
//  2. Services in cells are started: until the first answer, and until 100 cells wait,
//     and what these take of memory. A service with one waiting sandbox is started, what that takes of memory is
//     read, and the service is ended. Then the services of b, c and e are started, and
//     the memory of N waiting sandboxes is read.
//  3. Latency: in each round each case is run by b, d and e, and in some
//     rounds, evenly spread, by a and c before and after them: what drifts, drifts for all. Before
//     each run the pool is full, nothing is started or removed, and the machine has
//     been left alone for quietTime.
//  4. Sustained load: for each case a, b and e with their numbers of callers in turn,
//     each for a fixed time. The CPU time is the whole machine's, from a full and
//     idle pool until the pool is full and idle again, so that no work is left
//     out: containers that are started and removed, the Docker daemon, the client.
//  5. 200 requests are sent at one time.
//  6. The report is printed and written as JSON, with each single latency.
//
// Every reply is checked for its text, image and file. One that is wrong ends the
// benchmark; one that turns the caller away (429, 503) is counted.
package main
