// Package storage keeps what a run leaves behind (files, images, the executed
// notebook, the result) in a blob store and hands out links to it that expire.
//
// What it promises:
//
//   - An object that can be seen is whole. A reader that fails, a context that
//     ends, a full disk or a killed process leaves nothing visible. A power cut
//     may take the objects of the last seconds, each of them as a whole.
//   - A key holds no character and no name that a store treats in a special way,
//     whatever the code that ran called its files; see [RunKey].
//   - A link works for one key until one time. Nobody who lacks the secret can
//     change either of them.
//   - Objects are streamed both ways; no file is held in memory (except by
//     mem://, which is there for tests and trials).
//
// How an object comes and goes:
//
//  1. [RunKey] makes the key: runs/<date>/<run id>/files/<escaped name>.
//  2. [Store.Put] takes the media type from the name and the first 512 bytes,
//     streams the content into the store and hashes it on the way. In a folder
//     it is a temporary file beside its place, fsynced and then renamed; in a cloud,
//     pieces of 8 MiB that are completed at the end, or taken back. After a short
//     outage it begins anew, where the content can be read again; see [Store.Replay]
//     and [Temporary].
//  3. [Store.Link] lets a cloud sign: a SAS, a presigned or a V4 URL for reading one
//     object until one time. Elsewhere, and if [Options.ServeFiles] says so, it signs
//     version, key and expiry with HMAC-SHA256. The secrets for that are in a file of mode
//     0600, so that links outlive a restart; by their age others come, see keyring.go.
//  4. [Store.Verify] checks the query of a link of its own in constant time, the
//     signature first and then the clock.
//  5. [Store.Get] opens a [Reader], which reads ranges where [http.ServeContent]
//     seeks, all of them of one object. [Object.Disposition] says whether a browser may
//     show the object.
//  6. [Store.Sweep] removes runs and kept inputs of old days, by date folder.
//  7. [Open] makes the folder, container or bucket if it is missing, and in a folder
//     looks in the background for temporary files whose writer has died and removes
//     them. A living writer holds a lock (flock) on its own.
//
// Beside objects there are records: small, unreachable by any link, and for programs
// that share a store to agree by. [Store.PutNew] creates one if there is none, and of
// several callers in whatever processes one succeeds; see also [Store.Replace],
// [Store.Read] and [Store.List].
//
// A folder (file://), memory (mem://), Azure Blob Storage (azblob://), Amazon S3 and what
// speaks its protocol (s3://) and Google Cloud Storage (gs://) are the stores, all through
// [gocloud.dev/blob]; what a cloud needs beyond it is the interface cloud. One suite runs
// over all of them, see package storagetest. No error's text holds a credential or a
// signature.
package storage
