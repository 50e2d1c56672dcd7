package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"notebox/egress"
	"notebox/runner"
)

// maxCA of --egress-ca, bytes: what a host trusts is about 200 KB, and a sandbox
// takes no frame of more than 4 MiB.
const maxCA = 1 << 20

// networkSettings are the flags about what sandboxes reach.
type networkSettings struct {
	hosts    list
	private  list
	ca       string
	maxBytes int64
}

func (s *networkSettings) register(f *flag.FlagSet) {
	s.maxBytes = egress.DefaultMaxBytes
	f.Var(&s.hosts, "allow-network", "Let runs with network: true reach these `hosts`, with commas between them: HOST or HOST:PORT, where HOST is a name, *.name, an address or * for every public host; without a port, 80 and 443. (default: no network)")
	f.Var(&s.private, "egress-allow-private", "Let these `hosts` of --allow-network be at private addresses, with commas between them: HOST, HOST:PORT or an address range.")
	f.StringVar(&s.ca, "egress-ca", "", "Let runs with a network trust the certificates in this PEM `file`, beside the image's own.")
	f.Var((*size)(&s.maxBytes), "egress-max-size", "Let one run move this `size` of data over its network, both directions together.")
}

// open returns what the settings allow; nil if they allow none. own are the
// addresses of the service itself.
func (s *networkSettings) open(log *slog.Logger, own ...string) (runner.Network, error) {
	if len(s.hosts) == 0 {
		if len(s.private) > 0 || s.ca != "" {
			return nil, errors.New("--egress-allow-private and --egress-ca are for a network: --allow-network says which hosts it has")
		}
		return nil, nil
	}
	hosts, err := egress.ParseHosts(s.hosts)
	if err != nil {
		return nil, fmt.Errorf("--allow-network: %w", err)
	}
	o := egress.Options{Hosts: hosts, Exceptions: s.private, Own: own, MaxBytes: s.maxBytes, Log: log}
	if s.ca != "" {
		if o.CA, err = readCA(s.ca); err != nil {
			return nil, fmt.Errorf("--egress-ca: %w", err)
		}
	}
	proxy, err := egress.New(o)
	if err != nil {
		return nil, fmt.Errorf("--egress-allow-private: %w", err)
	}
	return proxy, nil
}

// readCA finds what cannot be meant before a run does.
func readCA(name string) ([]byte, error) {
	raw, err := os.ReadFile(name)
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxCA:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxCA)
	case !x509.NewCertPool().AppendCertsFromPEM(raw):
		return nil, fmt.Errorf("%s has no certificate in PEM", name)
	case bytes.Contains(raw, []byte("PRIVATE KEY")):
		return nil, fmt.Errorf("%s has a private key in it, which every run could read", name)
	}
	return bytes.ToValidUTF8(raw, []byte("?")), nil
}
