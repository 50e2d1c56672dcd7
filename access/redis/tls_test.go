package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/storage/storagetest"
)

// certificate writes one for 127.0.0.1, which signs itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", encoded)
}

// TestTLS: a service believes those that SSL_CERT_FILE names, and no other. Not parallel: it
// sets a variable, which Go reads once.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	t.Setenv("SSL_CERT_FILE", cert)
	one := begin(t, 1, storagetest.RedisTLS(t, cert, key).URL(t), access.Limits{RunsAtOnce: 1})[0]
	require.Equal(t, access.SharingOK, one.sharing(t).Store)
	require.Len(t, one.places(t, 2), 1)

	cert, key = certificate(t)
	stranger := open(t, storagetest.RedisTLS(t, cert, key).URL(t), access.Limits{RunsAtOnce: 1})
	require.Equal(t, access.SharingDown, stranger.sharing(t).Store)
	require.Equal(t, 1, stranger.log.count("unknown authority"))
}
