// Package operation holds tests alone: what an operator meets. Services are killed and start
// again, are full, lose their store, and hold in the end what they held before.
package operation

import (
	"os"
	"testing"

	"notebox/tests/e2e/service"
)

// shared is the service of those tests that need none of their own.
var shared service.Service

func TestMain(m *testing.M) { os.Exit(service.Main(m, &shared, "^TestHoldings$")) }
