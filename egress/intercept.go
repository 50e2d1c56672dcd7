package egress

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// authority is what the proxy stands for TLS with, before the hosts that it signs requests
// in to. Its key is this process's alone.
type authority struct {
	server *tls.Config
	pem    []byte // that programs are to trust
}

// validity of a certificate is longer than any service runs.
const validity = 10 * 365 * 24 * time.Hour

// newAuthority makes one certificate for these hosts, which is its own authority.
func newAuthority(hosts []string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "notebox, before package registries"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &authority{
		server: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}},
			MinVersion:   tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
	}, nil
}

// intercept answers a CONNECT to a host that requests are signed in to: what goes through
// the tunnel are requests to that host, which the proxy sends on by TLS of its own.
func (s *session) intercept(w http.ResponseWriter, r *http.Request) error {
	if err := s.proxy.allow(r.URL.Host); err != nil {
		return err
	}
	host := r.URL.Host
	// Whoever asks takes the answer for a host that can be reached.
	outside, err := s.dial(r.Context(), "tcp", host)
	if err != nil {
		return err
	}
	outside.Close()
	inside, from, stop, err := connected(s.ctx, w)
	if inside == nil {
		return err
	}
	defer inside.Close()
	defer stop()
	one := &single{conn: tls.Server(&prefixed{inside, from}, s.proxy.authority.server), over: make(chan struct{})}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.Host = "https", host, strings.TrimSuffix(host, ":443") // as clients name it
		s.pass(w, r)
	}), one.noteState)
	defer context.AfterFunc(s.ctx, func() { server.Close() })()
	_ = server.Serve(one) // its end is the connection's
	return nil
}

// prefixed is a connection of which some was read.
type prefixed struct {
	net.Conn
	from io.Reader
}

func (p *prefixed) Read(b []byte) (int, error) { return p.from.Read(b) }

// single is a listener of one connection. It ends with that.
type single struct {
	conn net.Conn
	take sync.Once
	over chan struct{}
	end  sync.Once
}

func (l *single) Accept() (conn net.Conn, err error) {
	l.take.Do(func() { conn = l.conn })
	if conn == nil {
		<-l.over
		err = io.EOF
	}
	return conn, err
}

// noteState hears of the connection's end from the server.
func (l *single) noteState(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		l.Close()
	}
}

// Close implements net.Listener.
func (l *single) Close() error {
	l.end.Do(func() { close(l.over) })
	return nil
}

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }
