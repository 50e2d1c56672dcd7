package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bigFile is what goes through a run's network in one piece, bytes.
const bigFile = 50 << 20

// outside stands for the servers of the internet: on loopback, which the tests'
// services except.
type outside struct {
	plain, secure *httptest.Server
	big           []byte
}

func newOutside(t *testing.T) *outside {
	o := &outside{big: make([]byte, bigFile)}
	_, _ = rand.Read(o.big)
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello from outside") })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.big) })
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		_, _ = io.WriteString(w, hex.EncodeToString(h.Sum(nil)))
	})
	mux.HandleFunc("/inwards", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	o.plain, o.secure = newServer(t, mux), newServer(t, mux)
	o.plain.Start()
	o.secure.StartTLS()
	return o
}

// newServer is one that is not at 127.0.0.1, which programs know to be their own
// machine. It is not started.
func newServer(t *testing.T, h http.Handler) *httptest.Server {
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	t.Cleanup(s.Close)
	return s
}

func hostOf(t *testing.T, server string) string {
	u, err := url.Parse(server)
	require.NoError(t, err)
	return u.Host
}

// networkService is a service whose runs reach what is given.
func networkService(t *testing.T, name string, flags ...string) *program {
	t.Helper()
	folder := t.TempDir()
	p, stop, err := start(folder, append([]string{"--service-id", serviceID + "-" + name, "--pool-size", "1", "--pool-max", "1"}, flags...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, stop())
		if t.Failed() {
			printErrors(folder + "/log")
		}
	})
	return p
}

func TestSpike(t *testing.T) {
	o := newOutside(t)
	host := hostOf(t, o.plain.URL)
	p := networkService(t, "spike", "--allow-network", host, "--egress-allow-private", host)
	for range 2 {
		begin := time.Now()
		r := executeOn(t, p, map[string]any{"network": true, "code": fmt.Sprintf(`
import subprocess, time, urllib.request, os, hashlib
from urllib.request import ProxyHandler, build_opener
o = build_opener(ProxyHandler({'http': os.environ['http_proxy']}))
print(o.open(%[1]q + '/hello').read())
print(subprocess.run(['curl', '-sS', %[1]q + '/hello'], capture_output=True))
print(subprocess.run(['curl', '-sS', 'http://127.0.0.1:1/hello'], capture_output=True))
t = time.time(); b = o.open(%[1]q + '/big').read(); print(time.time() - t, hashlib.sha256(b).hexdigest())
t = time.time(); b = o.open(%[1]q + '/sum', data=b).read(); print(time.time() - t, b)
`, o.plain.URL)})
		t.Log(r.Status, r.Text, r.Usage, time.Since(begin))
	}
	_ = strings.TrimSpace
	_ = net.ErrClosed
}
