package operation

import (
	"testing"

	"notebox/tests/e2e/service"

	"github.com/stretchr/testify/require"
)

// TestSecondServiceInOneStateFolder is refused.
func TestSecondServiceInOneStateFolder(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, service.Options{Flags: []string{"--state-dir", shared.Folder + "/state"}}.Refused(t), "another notebox uses the state folder")
}
