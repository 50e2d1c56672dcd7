package network

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// bigFile is what goes through a run's network in one piece, bytes.
const bigFile = 50 << 20

// outside stands for the internet in the tests of the network: two servers on loopback,
// which the tests' service excepts, and a certificate authority of their own.
type outside struct {
	plain, secure *httptest.Server
	ca            string // file
	content       []byte // of /big
	repository    http.FileSystem
	endless       atomic.Int64 // how often /endless was asked for
	left          chan struct{}
}

// outsideHost is not 127.0.0.1, which programs know to be their own machine.
const outsideHost = "127.0.0.2"

func newOutside(t *testing.T) *outside {
	o := &outside{content: make([]byte, bigFile), left: make(chan struct{}, 10)}
	_, _ = rand.Read(o.content)
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello from outside") })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.content) })
	mux.HandleFunc("/sum", sum)
	mux.HandleFunc("/endless", o.serveEndless)
	mux.HandleFunc("/inwards", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	mux.HandleFunc("/simple/notebox-probe/", servePackage)
	mux.HandleFunc("/repository/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix("/repository/", http.FileServer(o.repository)).ServeHTTP(w, r)
	})
	o.plain, o.secure = serverAt(t, mux), serverAt(t, mux)
	o.plain.Start()
	o.secure.TLS = &tls.Config{Certificates: []tls.Certificate{o.newCertificate(t)}, MinVersion: tls.VersionTLS12}
	o.secure.StartTLS()
	return o
}

// serverAt is a server that is not started.
func serverAt(t *testing.T, h http.Handler) *httptest.Server {
	listener, err := net.Listen("tcp", outsideHost+":0")
	require.NoError(t, err)
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	t.Cleanup(s.Close)
	return s
}

// newCertificate is one of an authority that nobody but the operator knows.
func (o *outside) newCertificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the company's"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte{1},
	}
	rawCA, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	require.NoError(t, err)
	o.ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(o.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rawCA}), 0o600))
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "outside"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(outsideHost)}, DNSNames: []string{registryName}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, AuthorityKeyId: []byte{1},
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// sum answers an upload with its SHA-256.
func sum(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	_, _ = io.Copy(h, r.Body)
	_, _ = io.WriteString(w, hex.EncodeToString(h.Sum(nil)))
}

// serveEndless sends until nobody takes it any more.
func (o *outside) serveEndless(w http.ResponseWriter, _ *http.Request) {
	o.endless.Add(1)
	for chunk := make([]byte, 10_000); ; {
		if _, err := w.Write(chunk); err != nil {
			o.left <- struct{}{}
			return
		}
	}
}

// servePackage is a package index (PEP 503) with one wheel in it.
func servePackage(w http.ResponseWriter, r *http.Request) {
	const wheel, info = "notebox_probe-1.0-py3-none-any.whl", "notebox_probe-1.0.dist-info/"
	if filepath.Base(r.URL.Path) != wheel {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><a href="%s">%s</a>`, wheel, wheel)
		return
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, f := range [][2]string{
		{"notebox_probe.py", "ANSWER = 42\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: notebox-probe\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: notebox\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "notebox_probe.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		part, err := z.Create(f[0])
		if err == nil {
			_, err = io.WriteString(part, f[1])
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_ = z.Close()
	_, _ = w.Write(packed.Bytes())
}

// makeRepository has a run without a network make a git repository, for the servers
// to serve as files.
func (o *outside) makeRepository(t *testing.T, p *service.Service) {
	r := p.Execute(t, map[string]any{"timeout": 120, "code": `!git init -q -b main /tmp/r && cd /tmp/r && echo 'from the repository' > README && git add . && git -c user.name=a -c user.email=a@b commit -q -m first
!git clone -q --bare /tmp/r /tmp/bare && cd /tmp/bare && git update-server-info && tar cf /mnt/data/bare.tar .`})
	require.Len(t, r.Files, 1, r.Text)
	status, raw := service.Get(t, r.Files[0].URL)
	require.Equal(t, http.StatusOK, status)
	folder := t.TempDir()
	for archive := tar.NewReader(bytes.NewReader(raw)); ; {
		head, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(head.Name))
		name := filepath.Join(folder, head.Name)
		if head.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(name, 0o700))
			continue
		}
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
	o.repository = http.Dir(folder)
}
