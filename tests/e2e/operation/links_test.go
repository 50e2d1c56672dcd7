package operation

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

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

	var shared struct{ URL string }
	run := strings.Split(link, "/")[7]  // http://host/v1/files/runs/date/run/notebook.ipynb
	require.Eventually(t, func() bool { // the reply comes before its result is stored
		return send(t, http.MethodPost, two.URL+"/v1/executions/"+run+"/share", &shared) == http.StatusCreated
	}, time.Minute, 100*time.Millisecond, "also of a run of the other")
	for p, want := range map[*service.Service]int{one: http.StatusOK, two: http.StatusOK, apart: http.StatusForbidden} {
		status, _ := service.Get(t, strings.Replace(shared.URL, two.URL, p.URL, 1))
		require.Equal(t, want, status)
	}
	require.Equal(t, http.StatusNoContent, send(t, http.MethodDelete, one.URL+"/v1/executions/"+run+"/share", nil))
	for _, p := range []*service.Service{one, two} {
		status, _ := service.Get(t, strings.Replace(shared.URL, two.URL, p.URL, 1))
		require.Equal(t, http.StatusNotFound, status, "it is revoked for both at once")
	}
}

// send sends a request without a body, and decodes what it is answered with.
func send(t *testing.T, method, url string, into any) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	if into != nil {
		require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
	}
	return answer.StatusCode
}
