// Package network holds tests alone: what runs reach outside, and the packages that requests
// ask for. The internet and the registries are servers of the tests' own on loopback.
package network

import (
	"os"
	"testing"

	"notebox/tests/e2e/service"
)

// shared is the service of those tests that need none of their own.
var shared service.Service

func TestMain(m *testing.M) { os.Exit(service.Main(m, &shared, "^$")) }
