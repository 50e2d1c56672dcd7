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
//     it is a temporary file beside its place, fsynced and then renamed. After a
//     short outage it begins anew, where the content can be read again; see
//     [Store.Replay] and [Temporary].
//  3. [Store.Link] signs version, key and expiry with HMAC-SHA256. The secret is
//     in a file of mode 0600, so that links outlive a restart.
//  4. [Store.Verify] checks a link's query in constant time, the signature first
//     and then the clock.
//  5. [Store.Get] opens a [Reader], which reads ranges where [http.ServeContent]
//     seeks. [Object.Disposition] says whether a browser may show the object.
//  6. [Store.Sweep] removes runs and kept inputs of old days, by date folder.
//  7. [Open] looks in the background for temporary files whose writer has died
//     and removes them. A living writer holds a lock (flock) on its own.
//
// Beside objects there are records: small, unreachable by any link, and for programs
// that share a store to agree by. [Store.PutNew] creates one if there is none, and of
// several callers in whatever processes one succeeds; see also [Store.Replace],
// [Store.Read] and [Store.List].
//
// A folder (file://) and memory (mem://) are the stores so far, both through
// [gocloud.dev/blob], whose drivers are the boundary for further ones.
package storage
