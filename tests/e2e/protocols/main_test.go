// Package protocols holds tests alone: who speaks to the service, and what each is answered.
// Models, Discord and Dify are scripts; clients, sandboxes and files are real.
package protocols

import (
	"os"
	"testing"

	"notebox/tests/e2e/service"
)

// shared is the service of those tests that need none of their own.
var shared service.Service

func TestMain(m *testing.M) { os.Exit(service.Main(m, &shared, "^$")) }
