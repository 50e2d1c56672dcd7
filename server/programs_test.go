package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
)

// TestProgramsAreBoundedAsNotebooks: a control character is one byte of code, and six in JSON.
func TestProgramsAreBoundedAsNotebooks(t *testing.T) {
	s := newService(t)
	a := s.post("/v1/execute", "text/plain", strings.Repeat("\x01", 12<<20))
	s.requireRefused(a, http.StatusRequestEntityTooLarge, "as a notebook")
	require.Equal(t, http.StatusOK, s.post("/v1/execute", "text/plain", strings.Repeat("x", 12<<20)).StatusCode)
}

// TestLargeProgramsHaveAPlace: also those of a protocol whose request is over.
func TestLargeProgramsHaveAPlace(t *testing.T) {
	s := newService(t)
	h := s.hold()
	for _, c := range []struct {
		desc   string
		size   int
		places int
	}{{"small", 100, 0}, {"large", executor.LargeProgram, 1}} {
		t.Run(c.desc, func(t *testing.T) {
			code := strings.Repeat("x", c.size)
			run, err := s.server.Executor.Begin(t.Context(), nil, &executor.Order{Code: &code, Base: "http://localhost"})
			require.NoError(t, err)
			require.Equal(t, c.places, s.server.Intake.Taken())
			run.Start(executor.Silence{})
			h.letGo <- struct{}{}
			_, err = run.Wait(t.Context())
			require.NoError(t, err)
			run.Leave()
			require.Eventually(t, func() bool { return s.server.Intake.Taken() == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}
