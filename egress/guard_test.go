package egress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuardRefusesItsOwnMachine(t *testing.T) {
	g, err := NewGuard(nil)
	require.NoError(t, err)
	own := netip.MustParseAddr("8.8.8.8")
	require.NoError(t, g.Check(own))
	g.own = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(24, 32)}}, nil
	}
	require.ErrorIs(t, g.Check(own), ErrAddress)
	require.NoError(t, g.Check(netip.MustParseAddr("8.8.4.4")))
	require.NoError(t, g.Check(netip.MustParseAddr("64:ff9b::8.8.4.4")), "if there is only NAT64 to reach it")
}

func TestGuardExceptions(t *testing.T) {
	for _, entry := range []string{"", "*", "*.test", "http://host", "host:", "host:0", "host:x", "10.0.0.0/99", "a b", "user@host"} {
		_, err := parseException(entry)
		require.Error(t, err, entry)
	}
	g, err := NewGuard([]string{"Host.test", "other.test:8443", "10.1.0.0/16", "[fd00::1]:80", "192.168.0.5"})
	require.NoError(t, err)
	require.True(t, g.Trusts("HOST.test", 1))
	require.True(t, g.Trusts("host.test.", 1))
	require.False(t, g.Trusts("sub.host.test", 1))
	require.True(t, g.Trusts("other.test", 8443))
	require.False(t, g.Trusts("other.test", 443))
	require.True(t, g.Trusts("fd00::1", 80))
	require.False(t, g.Trusts("fd00::1", 81))
	require.True(t, g.Trusts("192.168.0.5", 1))
	require.False(t, g.Trusts("10.1.2.3", 1))
	require.NoError(t, g.Check(netip.MustParseAddr("10.1.2.3")))
	require.NoError(t, g.Check(netip.MustParseAddr("::ffff:10.1.2.3")))
	require.Error(t, g.Check(netip.MustParseAddr("10.2.0.1")))
}
