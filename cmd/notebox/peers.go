package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"notebox/server"
	"notebox/server/peers"
)

const (
	// maxPeerSecret is more than a secret has, bytes.
	maxPeerSecret = 64 << 10
	// peerCheckTime is how long after the start its peers should know a service.
	peerCheckTime = time.Minute
)

// peerSettings are the flags about other services behind the same address.
type peerSettings struct {
	names   list
	secret  string
	address string
}

func (s *peerSettings) register(f *flag.FlagSet) {
	f.Var(&s.names, "peers", "Share sessions with the services at all addresses of these `names`, with commas between them: NAME or NAME:PORT, as of a headless Service; without a port, that of --listen. (default: this service is alone)")
	f.StringVar(&s.secret, "peer-secret", "", "Know peers by the secret in this `file`, at least 32 bytes, which all peers share.")
	f.StringVar(&s.address, "peer-address", "", "Be known to peers by this `address`, IP or IP:PORT, which must be one of --peers'. (default: the variable POD_IP, or the host's first address)")
}

func (s *peerSettings) check() error {
	switch {
	case len(s.names) == 0 && (s.secret != "" || s.address != ""):
		return errors.New("--peer-secret and --peer-address are for --peers")
	case len(s.names) > 0 && s.secret == "":
		return errors.New("--peers needs --peer-secret: a file with at least 32 bytes, the same for all peers")
	}
	return nil
}

// openPeers finds the services that share sessions with this one.
func (p *program) openPeers(cfg *server.Config) error {
	s := p.settings.peers
	if len(s.names) == 0 {
		return nil
	}
	secret, err := readPeerSecret(s.secret)
	if err != nil {
		return fmt.Errorf("--peer-secret: %w", err)
	}
	listen, err := netip.ParseAddrPort(p.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("--peers: %w", err)
	}
	own, err := ownAddress(s.address, listen)
	if err != nil {
		return fmt.Errorf("--peer-address: %w", err)
	}
	var names []string
	for _, name := range s.names {
		names = append(names, withPort(name, listen.Port()))
	}
	if cfg.Peers, err = peers.New(peers.Config{Own: own, Secret: secret, Names: names, Log: p.log}); err != nil {
		return fmt.Errorf("--peers: %w", err)
	}
	if cfg.Sessions != nil {
		cfg.Sessions = &peers.Sessions{Sessions: cfg.Sessions, Peers: cfg.Peers}
	}
	p.log.Info("sessions are shared with peers", "own_address", cfg.Peers.Own(), "peers", strings.Join(names, ","))
	later := time.AfterFunc(peerCheckTime, func() {
		if err := cfg.Peers.Check(context.Background()); err != nil {
			p.log.Error("peers may not find this service", "own_address", cfg.Peers.Own(), "error", err)
		}
	})
	p.onClose(func() error { later.Stop(); return nil })
	return nil
}

// readPeerSecret reads the secret, without a line's end.
func readPeerSecret(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPeerSecret))
	return bytes.TrimRight(raw, "\r\n"), err
}

// ownAddress is where peers find this service, which listens at listen: what is said, or
// Kubernetes says of the pod, or the first address of the host that others can reach.
func ownAddress(said string, listen netip.AddrPort) (netip.AddrPort, error) {
	text := cmp.Or(said, os.Getenv("POD_IP"))
	if text == "" {
		addr, err := firstAddress(listen.Addr())
		return netip.AddrPortFrom(addr, listen.Port()), err
	}
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return netip.AddrPortFrom(addr, listen.Port()), nil
	}
	return netip.ParseAddrPort(text)
}

func firstAddress(listen netip.Addr) (netip.Addr, error) {
	if !listen.IsUnspecified() {
		return listen, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, of := range all {
		if prefix, err := netip.ParsePrefix(of.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this host has no address that others reach")
}

// withPort is a name with a port, its own or this one.
func withPort(name string, port uint16) string {
	if _, _, err := net.SplitHostPort(name); err == nil {
		return name
	}
	return net.JoinHostPort(strings.Trim(name, "[]"), strconv.Itoa(int(port)))
}
