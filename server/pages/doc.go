// Package pages serves the pages on which the API is read and tried, /docs and /redoc, and
// all that they are made of: a browser that shows them asks no other host for anything.
//
//  1. What others wrote is in assets, compressed, as scripts/pages.sh took it from its npm
//     package, with its licence; SHA256SUMS there says which version of which package each
//     file is of. What is ours is in own. All of it is embedded in the program.
//  2. A page is page.html with its places filled in: a line to choose the document, and an element in which
//     Swagger UI or Redoc shows it. All its links are relative, so that it works below any
//     path of a proxy.
//  3. A compressed file is sent as it is to who accepts gzip, and else unpacked.
//  4. The Content-Security-Policy of a page lets it run the scripts of this service and
//     call this service, and nothing else; see policy.go.
package pages
