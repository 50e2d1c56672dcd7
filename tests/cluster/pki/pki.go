// Package pki makes what the parts of a test cluster know each other by: one certificate
// authority, a certificate and a kubeconfig for each part, and the key that signs the tokens of
// service accounts. A folder that has them already is left as it is.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	// validity outlasts every test; a cluster that somebody keeps is made anew after it.
	validity = 30 * 24 * time.Hour
	// skew lets a clock that goes wrong by a little not refuse a new certificate.
	skew = time.Hour
	// tokenKeyBits is what the API server's tokens (RS256) need at least.
	tokenKeyBits = 2048
)

// Config is one cluster's.
type Config struct {
	Dir       string            // where all is written
	Server    string            // the API server's address, without a port
	Port      string            // and its port
	ServiceIP string            // the address of the Service "kubernetes"
	Nodes     map[string]string // the address of each node, by its name
}

// part is whom a certificate names.
type part struct {
	file, name, group string
	hosts             []string // for one that serves
	kubeconfig        bool
}

// Write makes Config.Dir: ca.crt and ca.key, NAME.crt and NAME.key of each part, NAME.kubeconfig
// of each that calls the API server, and tokens.key. The users and groups are those that
// Kubernetes' own roles are bound to:
// https://kubernetes.io/docs/setup/best-practices/certificates/
func Write(config Config) error {
	if _, err := os.Stat(filepath.Join(config.Dir, "done")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return err
	}
	authority, err := newAuthority(config.Dir)
	if err != nil {
		return err
	}
	parts := []part{
		{file: "apiserver", name: "kube-apiserver", hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"localhost", "127.0.0.1", config.Server, config.ServiceIP,
		}},
		{file: "apiserver-kubelet", name: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "front-proxy", name: "front-proxy-client"},
		{file: "admin", name: "admin", group: "system:masters", kubeconfig: true},
		{file: "controller-manager", name: "system:kube-controller-manager", kubeconfig: true},
		{file: "scheduler", name: "system:kube-scheduler", kubeconfig: true},
		{file: "proxy", name: "system:kube-proxy", kubeconfig: true},
		{file: "policies", name: "notebox-test:policies", kubeconfig: true},
	}
	for node, address := range config.Nodes {
		parts = append(parts, part{
			file: node, name: "system:node:" + node, group: "system:nodes",
			hosts: []string{node, address}, kubeconfig: true,
		})
	}
	for _, p := range parts {
		if err := authority.issue(config, p); err != nil {
			return fmt.Errorf("certificate of %s: %w", p.file, err)
		}
	}
	tokens, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
	if err != nil {
		return err
	}
	if err := writeKey(filepath.Join(config.Dir, "tokens.key"), tokens); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(config.Dir, "done"), nil, 0o600)
}

type authority struct {
	dir         string
	certificate *x509.Certificate
	key         crypto.Signer
	serial      int64
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(1, pkix.Name{CommonName: "notebox test cluster"})
	template.IsCA = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, certificate: certificate, key: key, serial: 1}
	return a, errors.Join(
		writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", der),
		writeKey(filepath.Join(dir, "ca.key"), key),
	)
}

// issue writes a part's certificate, its key and its kubeconfig.
func (a *authority) issue(config Config, p part) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	a.serial++
	subject := pkix.Name{CommonName: p.name}
	if p.group != "" {
		subject.Organization = []string{p.group}
	}
	template := template(a.serial, subject)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range p.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	path := filepath.Join(a.dir, p.file)
	if err := errors.Join(writePEM(path+".crt", "CERTIFICATE", der), writeKey(path+".key", key)); err != nil {
		return err
	}
	if !p.kubeconfig {
		return nil
	}
	return a.writeKubeconfig(config, path)
}

// writeKubeconfig has all in the one file, so that it works from any folder and in any namespace.
func (a *authority) writeKubeconfig(config Config, path string) error {
	certificate, err := os.ReadFile(path + ".crt")
	if err != nil {
		return err
	}
	key, err := os.ReadFile(path + ".key")
	if err != nil {
		return err
	}
	const name = "notebox-test"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{
		Server:                   "https://" + net.JoinHostPort(config.Server, config.Port),
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}),
	}
	file.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.WriteToFile(*file, path+".kubeconfig")
}

func template(serial int64, subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               subject,
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
}

func writeKey(path string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
