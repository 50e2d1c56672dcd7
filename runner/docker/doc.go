// Package docker starts sandboxes as containers of a Docker daemon.
//
//  1. Start creates a container with the posture of posture.go, and nothing of
//     the host in it: no network, no bind mount, no log. It has a user that no other
//     container of the daemon has, see users.go.
//  2. It attaches to the container's stdin, stdout and stderr, and only then
//     starts it, so that no byte is lost. Stdin and stdout are the sandbox's
//     stream; the end of stderr is kept for the log.
//  3. Kill removes the container by force and waits until the daemon has
//     forgotten it. The daemon also removes it by itself when its program ends.
//  4. Whatever of this fails or is lost on the way, the container has a name
//     that was known before it was created, and is removed under that name.
//  5. Reap removes what carries this service's label and is not known to this
//     process. Nothing else on the daemon is ever touched.
package docker
