// Package languages holds tests alone: what code meets in a sandbox, in each language. Its
// kernels are held against Jupyter's own, warm ones against those that are started anew.
package languages

import (
	"os"
	"testing"

	"notebox/tests/e2e/service"
)

// shared is the service of those tests that need none of their own.
var shared service.Service

func TestMain(m *testing.M) {
	os.Exit(service.Main(m, &shared, "^(TestConformanceComparison|TestConformanceRules|TestEnvironmentsDocumentHasEveryField)$"))
}
