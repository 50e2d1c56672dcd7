package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/remote"
	"notebox/agent/tool"
	"notebox/client"
)

// answering is a notebox that always gives one answer.
func answering(t *testing.T, answer http.HandlerFunc) remote.Notebox {
	ts := httptest.NewServer(answer)
	t.Cleanup(ts.Close)
	return remote.New(client.Options{BaseURL: ts.URL})
}

func problem(status int, field, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":%d,"field":%q,"detail":%q}`, status, field, detail)
	}
}

// packages checks that a model is told of packages that it cannot have.
func packages(detail string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		require.ErrorAs(t, err, new(*tool.CallError))
		require.ErrorContains(t, err, "The packages of the call cannot be installed: dependencies")
		require.ErrorContains(t, err, detail)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		desc    string
		answer  http.HandlerFunc
		session string
		check   func(t *testing.T, err error)
	}{
		{"for the model", problem(422, "code", "is too long"), "", func(t *testing.T, err error) {
			var call *tool.CallError
			require.ErrorAs(t, err, &call)
			require.Contains(t, err.Error(), "is too long")
		}},
		{"packages that cannot be", problem(422, "dependencies[1]", "dependencies[1]: is not a package's name"), "", packages("is not a package's name")},
		{"packages that may not be", problem(403, "dependencies", "dependencies: this service's operator allows none"), "", packages("allows none")},
		{"packages of a registry that is away", problem(503, "dependencies", "dependencies: the package registry cannot be reached"), "", packages("cannot be reached")},
		{"packages of a registry that is away, as an event", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: error\ndata: {\"status\":503,\"field\":\"dependencies\",\"detail\":\"dependencies: the package registry cannot be reached\"}\n\n")
		}, "", packages("cannot be reached")},
		{"a session that is over", problem(410, "", "gone"), "s", func(t *testing.T, err error) { require.ErrorIs(t, err, agent.ErrNoSession) }},
		{"no session of this key", problem(404, "", "nothing"), "s", func(t *testing.T, err error) { require.ErrorIs(t, err, agent.ErrNoSession) }},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := answering(t, c.answer).Execute(context.Background(), agent.Run{Code: "1", Session: c.session, Tell: func(string) {}})
			c.check(t, err)
		})
	}
}

func TestASessionThatIsGoneIsClosed(t *testing.T) {
	require.NoError(t, answering(t, problem(410, "", "gone")).CloseSession(t.Context(), "s"), "it was closed before")
	require.NoError(t, answering(t, problem(404, "", "nothing")).CloseSession(t.Context(), "s"), "it was never there")
	require.ErrorContains(t, answering(t, problem(403, "", "not yours")).CloseSession(t.Context(), "s"), "not yours")
}

func TestAboutSaysWhatCanBeInstalled(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"environments":[{"language":"go","display_name":"Go"},{"language":"python","display_name":"Python 3","dependencies":{"notation":"pip","allowed":["polars"]}}],"limits":{}}`)
	})
	about, _, err := c.About(context.Background(), "python")
	require.NoError(t, err)
	require.Equal(t, []tool.Language{{Name: "python", Title: "Python 3", Dependencies: "pip", Allowed: []string{"polars"}}, {Name: "go", Title: "Go"}}, about.Languages)
}
