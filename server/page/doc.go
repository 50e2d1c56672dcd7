// Package page serves the page on which code is tried, GET /, and all that it is made of: a
// browser that shows it asks no other host for anything.
//
//  1. The page is written in TypeScript, in source. scripts/page.sh has tsc check the types
//     and esbuild (bundle) make assets of it, with the npm packages of package-lock.json. The
//     assets are committed and embedded: `go build` needs no npm and no network.
//  2. index.html is the page. It loads main.js alone. What only some runs need, such as
//     KaTeX and Plotly, is loaded when an output wants it.
//  3. frame.html is a page in which the page shows what could hold scripts: HTML, Plotly,
//     widgets. Its policy gives it an origin of its own and no network; the page sends it its
//     content by postMessage. See policy.go.
//  4. Record writes one run as a page of its own, which needs no service: record.ts shows
//     the outputs with the modules that the page has. Of html/record.html, the bundle makes
//     record.txt, in which a run is filled: here, and in the page for a download.
package page
