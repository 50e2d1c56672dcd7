package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksOfServicesOnOneStore: a balancer sends a link to any of them.
func TestLinksOfServicesOnOneStore(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	service := func(name string, flags ...string) *program {
		p, stop, err := start(t.TempDir(), append([]string{
			"--service-id", serviceID + "-links-" + name, "--pool-size", "0", "--storage", "file://" + shared + "/files",
		}, flags...)...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, stop()) })
		return p
	}
	one := service("one", "--link-keys", shared+"/keys")
	two := service("two", "--link-keys", shared+"/keys")
	apart := service("apart")

	link := executeOn(t, one, map[string]any{"code": "1 + 1"}).Notebook.URL
	at := func(p *program) string { return strings.Replace(link, one.url(), p.url(), 1) }
	for _, p := range []*program{one, two} {
		status, raw := get(t, at(p))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, string(raw), "1 + 1")
	}
	status, _ := get(t, at(apart))
	require.Equal(t, http.StatusForbidden, status, "who has not the secret cannot check a link")
}
