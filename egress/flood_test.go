package egress

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silentResolver tells of each that asks, and answers nobody until its end.
type silentResolver struct{ asked, end chan struct{} }

func (r silentResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.asked <- struct{}{}
	<-r.end
	return nil, net.ErrClosed
}

// TestRequestsThatAreGivenUp: a program that asks and hangs up, again and again, has
// no more going on outside than one that waits. A listener of channels bounds only
// those that are open.
func TestRequestsThatAreGivenUp(t *testing.T) {
	for _, c := range []struct{ desc, request string }{
		{"a request", "GET http://silent.test/ HTTP/1.1\r\nHost: silent.test\r\n\r\n"},
		{"a tunnel, with a byte that keeps the server from noticing", "CONNECT silent.test:443 HTTP/1.1\r\nHost: silent.test:443\r\n\r\nx"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			hosts, err := ParseHosts([]string{"*"})
			require.NoError(t, err)
			silent := silentResolver{make(chan struct{}, 1), make(chan struct{})}
			s := serve(t, Options{Hosts: hosts, Resolver: silent})
			t.Cleanup(func() { close(silent.end) })
			answered := make(chan int, 1)
			for range maxConnections + 1 {
				client, err := net.Dial("tcp", s.address)
				require.NoError(t, err)
				fmt.Fprint(client, c.request)
				go func() {
					if res, err := http.ReadResponse(bufio.NewReader(client), nil); err == nil {
						answered <- res.StatusCode
					}
				}()
				select {
				case <-silent.asked:
				case status := <-answered:
					require.Equal(t, http.StatusServiceUnavailable, status)
					client.Close()
					return
				case <-time.After(patience):
					t.Fatal("neither asked for nor answered")
				}
				_ = client.(*net.TCPConn).SetLinger(0)
				client.Close()
			}
			t.Fatalf("more than %d connections go on at one time", maxConnections)
		})
	}
}
