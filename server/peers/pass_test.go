package peers

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPassBothWaysAtOnce: a peer that answers before it has read all is sent the rest.
func TestPassBothWaysAtOnce(t *testing.T) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(w, r.Body)
	}))
	defer peer.Close()
	passing := newPeers(t, "10.0.0.1:80")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, passing.Pass(w, r, strings.TrimPrefix(peer.URL, "http://")))
	}))
	defer front.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\none ")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer res.Body.Close()
	answer := bufio.NewReader(res.Body)
	first, err := answer.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "begun\n", first)
	_, err = io.WriteString(conn, "two\n")
	require.NoError(t, err)
	rest, err := answer.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "one two\n", rest)
}
