// Package cells is an Engine whose sandboxes are cells: processes in a worker, a container
// that lives on, which have walls of their own.
//
//  1. The first Start for an image has the Host start a worker. Its supervisor
//     (environments/supervisor) says when its zygote has imported everything.
//  2. Start opens a cell: a number, ids that no other cell has had lately, limits. Its
//     stream is a part of the worker's one stream, and has a window of its own.
//  3. Kill has the supervisor end the cell, and returns when nothing is left of it.
//  4. If a worker ends, all its cells end as sandboxes do whose host has failed. The
//     next Start has the spare worker, which was started beside it.
//  5. Runs with packages of a caller have a container of the Host\'s: see suits.
package cells
