package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/executor/ledger"
	"notebox/runner"
)

// TestExecutionsAreAsDescribed holds the calls around executions and their answers
// against the document.
func TestExecutionsAreAsDescribed(t *testing.T) {
	clock := new(testClock)
	store := sharedStore(t, "mem://", clock.now)
	mortal := &mortalStore{Store: store}
	killed, s := newService(t, over(mortal, "killed"), clock.set), newService(t, over(store, "a"), clock.set)
	killed.hold()
	cut := killed.accepted(killed.do(killed.with(`{"code":"x"}`, "Prefer", async)))
	mortal.dead.Store(true)
	clock.advance(ledger.LeaseTime + ledger.ClockSkew + time.Second)
	delay := make(chan struct{})
	s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) {
		<-delay
		return nil, &runner.Error{Code: runner.CodeFull, Message: "full"}
	}
	failed := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async)))
	close(delay)
	require.NoError(t, s.server.Wait(t.Context()))
	runs := s.hold()
	going := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k")))

	doc := loadOpenAPI(t, s.get("/openapi.json").body)
	at := func(method, id string) *http.Request {
		return s.request(method, "/v1/executions/"+id, "", nil)
	}
	for _, c := range []struct {
		desc, path string
		request    *http.Request
		status     int
	}{
		{"accepted", "/v1/execute", s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k"), 202},
		{"of another request", "/v1/execute", s.with(`{"code":"y"}`, idempotent, "k"), 409},
		{"a key that is none", "/v1/execute", s.with(`{"code":"y"}`, idempotent, "a b"), 400},
		{"goes on", "/v1/executions/{id}", at("GET", going), 200},
		{"head", "/v1/executions/{id}", at("HEAD", going), 200},
		{"cancelled", "/v1/executions/{id}", at("DELETE", going), 202},
		{"has ended", "/v1/executions/{id}", at("GET", going), 200},
		{"had ended", "/v1/executions/{id}", at("DELETE", going), 204},
		{"accepted, and has ended", "/v1/execute", s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k"), 202},
		{"unknown", "/v1/executions/{id}", at("GET", "x"), 404},
		{"unknown to cancel", "/v1/executions/{id}", at("DELETE", "x"), 404},
		{"cut off", "/v1/executions/{id}", at("GET", cut), 410},
		{"failed", "/v1/executions/{id}", at("GET", failed), 500},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			if c.desc == "has ended" {
				<-runs.started
				require.NoError(t, s.server.Wait(t.Context()))
			}
			body, err := io.ReadAll(bodyOf(c.request))
			require.NoError(t, err)
			c.request.Body = io.NopCloser(bytes.NewReader(body))
			a := s.do(c.request)
			require.Equal(t, c.status, a.StatusCode, "%s", a.body)
			item := doc.Paths.Value(c.path)
			op := item.GetOperation(c.request.Method)
			require.NotNil(t, op.Responses.Status(c.status), "status %d is not described", c.status)
			c.request.Body = io.NopCloser(bytes.NewReader(body))
			input := &openapi3filter.RequestValidationInput{
				Request: c.request, PathParams: map[string]string{"id": going},
				Route:   &routers.Route{Spec: doc, Path: c.path, PathItem: item, Method: c.request.Method, Operation: op},
				Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
			}
			if c.status < 400 {
				require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input))
			} else if c.status == 400 {
				require.Error(t, openapi3filter.ValidateRequest(context.Background(), input))
			}
			require.NoError(t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input, Status: a.StatusCode, Header: a.Header,
				Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
			}), "%.2000s", a.body)
		})
	}
}

func bodyOf(r *http.Request) io.Reader {
	if r.Body == nil {
		return http.NoBody
	}
	return r.Body
}
