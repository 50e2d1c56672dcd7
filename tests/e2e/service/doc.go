// Package service is the real program as the tests below tests/e2e use it: a process with
// real containers, which they call over HTTP. They need a Docker daemon and the images,
// which `make test` brings.
//
//  1. Main starts the service that the tests of a package share, and looks at the end
//     whether it left anything behind.
//  2. Start and Options.Start start another one for one test, which ends with the test.
//  3. Execute, Stream, OpenSession and Ask call a service, as any client does. A Reply is
//     decoded strictly: a field that is not known here fails a test.
package service
