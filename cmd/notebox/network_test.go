package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetworkSettings(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for _, c := range []struct {
		desc     string
		settings networkSettings
		err      string // "": a network, or none
		none     bool
	}{
		{"nothing", networkSettings{}, "", true},
		{"hosts", networkSettings{hosts: list{"*", "a.test:8080", "*.b.test"}, private: list{"a.test:8080", "10.0.0.0/8"}}, "", false},
		{"no host", networkSettings{hosts: list{"http://a.test"}}, "--allow-network: ", false},
		{"no exception", networkSettings{hosts: list{"*"}, private: list{"*"}}, "--egress-allow-private: ", false},
		{"exceptions of nothing", networkSettings{private: list{"a.test"}}, "--allow-network says which", false},
		{"no file", networkSettings{hosts: list{"*"}, ca: folder + "/none"}, "--egress-ca: ", false},
		{"no certificate", networkSettings{hosts: list{"*"}, ca: write("text", "text")}, "no certificate in PEM", false},
		{"too large", networkSettings{hosts: list{"*"}, ca: write("large", strings.Repeat("x", maxCA+1))}, "is larger than", false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			n, err := c.settings.open(nil, "127.0.0.1:8080")
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.none, n == nil)
		})
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	withKey := networkSettings{hosts: list{"*"}, ca: write("key", string(certificate)+"-----BEGIN PRIVATE KEY-----\n")}
	_, err := withKey.open(nil)
	require.ErrorContains(t, err, "private key")
}
