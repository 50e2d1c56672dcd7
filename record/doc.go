// Package record makes one run's record: what a page of its own shows of it, without a
// service. The page that a link shares and the file of `notebox run --html` are made of it.
//
//  1. New reads the executed notebook, for the code, and the reply, for all that came out. It
//     takes neither variables nor inputs: they are in none of the two.
//  2. Addresses of what is stored are left out: they would work after the page's own end.
//  3. What is larger than the Bounds is cut or left out, and Notes say so.
//  4. Its JSON is what server/page/source/outputs/recorded.ts reads; page.WriteRecord writes
//     the page.
package record
