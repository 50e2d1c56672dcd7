package operation

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// TestLinksOfServicesOnOneStore: a balancer sends a link to any of them.
func TestLinksOfServicesOnOneStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	open := func(name string, flags ...string) *service.Service {
		return service.Start(t, "links-"+name, append([]string{"--pool-size", "0", "--storage", "file://" + folder + "/files"}, flags...)...)
	}
	one := open("one", "--link-keys", folder+"/keys")
	two := open("two", "--link-keys", folder+"/keys")
	apart := open("apart")

	link := one.Execute(t, map[string]any{"code": "1 + 1"}).Notebook.URL
	at := func(p *service.Service) string { return strings.Replace(link, one.URL, p.URL, 1) }
	for _, p := range []*service.Service{one, two} {
		status, raw := service.Get(t, at(p))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, string(raw), "1 + 1")
	}
	status, _ := service.Get(t, at(apart))
	require.Equal(t, http.StatusForbidden, status, "who has not the secret cannot check a link")
}
