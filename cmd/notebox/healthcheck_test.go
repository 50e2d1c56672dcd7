package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	status := http.StatusServiceUnavailable
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer ts.Close()
	check := healthcheckCommand()
	require.NoError(t, check.FlagSet.Parse([]string{"-url", ts.URL}))
	require.EqualError(t, check.Exec(t.Context(), nil), ts.URL+" answers 503 Service Unavailable")
	status = http.StatusOK
	require.NoError(t, check.Exec(t.Context(), nil))
}
