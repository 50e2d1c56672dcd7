package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
)

// TestZygoteHasNoToken: each cell is a fork of the zygote, and has in its memory what that was told.
func TestZygoteHasNoToken(t *testing.T) {
	token := bytes.Repeat([]byte("t"), wire.TokenSize)
	message, err := json.Marshal(commonOf(wire.Setup{
		Name: "worker", Token: token, Modules: []string{"numpy"}, Masked: []string{"/proc/keys"}, ReadOnly: []string{"/proc/sys"},
		Sysctls: map[string]string{"net.core.a": "1"}, Seccomp: json.RawMessage(`{}`),
	}, []byte("filter"), map[string]string{"cpu": "/run/groups/cpu"}))
	require.NoError(t, err)
	var have map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(message, &have))
	var fields []string
	for name := range have {
		fields = append(fields, name)
	}
	require.ElementsMatch(t, []string{"modules", "filter", "masked", "read_only", "sysctls", "groups"}, fields, "those of Setup in harness/cell/zygote.py")
	encoded, err := json.Marshal(token)
	require.NoError(t, err)
	require.NotContains(t, string(message), string(token))
	require.NotContains(t, string(message), string(bytes.Trim(encoded, `"`)))
}
