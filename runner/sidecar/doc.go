// Package sidecar is the runner.Host whose workers are in containers beside the service's, one for
// each language, in a pod or under any manager of containers. The service needs no Docker daemon
// for it, and no call of a cluster's API for a run.
//
// Each container runs `supervisor listen SOCKET` of its language's image, and shares the folder
// of the sockets with the service. environments/supervisor/wire has the protocol. The container
// needs the capabilities SETUID and SETGID, and SYS_ADMIN to prepare itself, which it gives up
// before it listens; see environments/supervisor/prepare.go.
//
// It has cells alone: a run that needs a container of its own, as one with packages does, is
// refused.
package sidecar
