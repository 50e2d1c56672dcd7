// Package asset serves files that are embedded in the program: pages, and what pages are
// made of.
//
//  1. Load reads a folder. A file NAME.gz is the asset NAME, which is sent as it is to who
//     accepts gzip, and else unpacked.
//  2. Each asset has its Content-Security-Policy. Policy makes the one of a page: it may run
//     the scripts of this service and call this service, and nothing else.
//  3. A browser keeps an asset, and asks for it again by its ETag: it changes with the program.
package asset
