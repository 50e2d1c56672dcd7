// Package notebook turns code into notebooks, and executed notebooks into
// results. The format is nbformat 4:
// https://nbformat.readthedocs.io/en/latest/format_description.html
//
// On the way in, New makes a notebook of code cells and Adopt takes a caller's
// own one. Both are exact: a cell's source arrives byte for byte, a field that
// Adopt does not know stays as it is, and what cannot be taken that way (broken
// UTF-8, lone surrogates) is refused with an InvalidError that the caller may
// read.
//
// On the way out, Decode takes an executed notebook as hostile: whoever ran code
// in the sandbox may have written any byte of it. It promises that it does not
// panic, that time and memory grow linearly with the input, and that each part
// either is in the Result, safe to pass on, or is in Result.Dropped with a reason:
//
//  1. NaN and Infinity, which Python writes and JSON lacks, are read as null.
//     Broken UTF-8 and lone surrogates are read as U+FFFD.
//  2. The document is walked without building a tree: its cells, their outputs,
//     the MIME bundle of each. Only what is not a notebook at all is an error.
//  3. Adjacent outputs of one stream are merged; then Plain brings them, like
//     tracebacks and text/plain, to one normal form without terminal escapes.
//  4. A media type in a bundle is JSON (kept as it is, if it is shallow and
//     unambiguous), binary (base64 is decoded, the bytes are checked against the
//     type's magic, and a Blob is named), or text. Of one picture as PNG, WebP and JPEG
//     the first is read. Sound and films that are data in text/html are Blobs, too.
//  5. The first cell that an exception ended gives Result.Error, with the line
//     of that cell from IPython's traceback. Errors of a cell that is tagged
//     raises-exception are outputs only.
//  6. What exceeds Limits is cut or dropped, and Result.Truncated is set.
//
// A Decoder does the same for single outputs while a run goes on. It remembers
// which names it gave to which bytes, so that the final Result names the same
// image the same, and where a stream's cursor is, so that each piece says what it
// replaces. Text renders a Result for a model to read.
package notebook
