package docker

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// oneAnswer is a network where each request has the same answer.
type oneAnswer struct{ ca string }

func (n oneAnswer) CA() []byte { return []byte(n.ca) }

func (oneAnswer) Serve(ctx context.Context, _ string, connections net.Listener) {
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer of "+r.URL.Host)
	})}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	_ = server.Serve(connections)
}

// TestSessionNetwork: the proxy is there for cells and commands, and in between.
func TestSessionNetwork(t *testing.T) {
	for _, c := range []struct{ desc, ca string }{{desc: "without certificates"}, {"with certificates", "# none\n"}} {
		t.Run(c.desc, func(t *testing.T) {
			s := openSession(t, runner.SessionSpec{Network: oneAnswer{c.ca}})
			const fetch = "import urllib.request as u; print(u.urlopen('http://somewhere/').read().decode())"
			for range 2 {
				require.Equal(t, "answer of somewhere\n", s.python(fetch).text)
				require.Equal(t, "answer of elsewhere", s.bash("curl -s http://elsewhere/").text)
			}
			require.NoError(t, s.Restart(t.Context()))
			require.Equal(t, "answer of somewhere\n", s.python(fetch).text)
		})
	}
}
