// Package builder makes the images of languages on a Docker daemon, from this program alone,
// and lists and removes them.
//
//  1. Base makes sure of the image that all are made from: one of the daemon's, a tar file's,
//     or Debian's of a registry.
//  2. Build sends a context (environments.BuildContext) to the daemon's BuildKit, as the
//     docker client does: one call sends the tar file, another one asks for the build, and
//     a session beside them answers what the build asks this program for, which are its
//     secrets: what it takes to reach the world from this host. A secret is there while a
//     step runs, and in no layer.
//  3. What BuildKit says of its steps goes to Options.Progress, a line for each, and all of
//     it into the error if one fails.
//
// The protocol is that of github.com/moby/buildkit/session and of the Docker API's /build
// with version=2, which Docker 18.09 and later have.
package builder
