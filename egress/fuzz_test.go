package egress

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzGuard holds that no address that Go itself calls special is connected to,
// nor one that stands for such a one in IPv6.
func FuzzGuard(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1", "::1", "10.1.2.3", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1",
		"fd00::1", "0.0.0.0", "224.0.0.1", "::127.0.0.1", "100.64.0.1", "8.8.8.8", "2606:4700::1111", "168.63.129.16", "255.255.255.255",
	} {
		ip := netip.MustParseAddr(seed)
		f.Add(ip.AsSlice())
	}
	guard, err := NewGuard(nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		ip, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		if guard.Check(ip) != nil {
			return
		}
		for _, inner := range append(embedded(ip), ip.Unmap()) {
			require.True(t, inner.IsGlobalUnicast() && !inner.IsPrivate(), "%v in %v", inner, ip)
		}
	})
}

// embedded returns the IPv4 addresses that an IPv6 one is translated or tunnelled to.
func embedded(ip netip.Addr) []netip.Addr {
	if !ip.Is6() {
		return nil
	}
	b := ip.As16()
	var out []netip.Addr
	if netip.MustParsePrefix("64:ff9b::/96").Contains(ip) || netip.MustParsePrefix("::/96").Contains(ip) {
		out = append(out, netip.AddrFrom4([4]byte(b[12:])))
	}
	if netip.MustParsePrefix("2002::/16").Contains(ip) {
		out = append(out, netip.AddrFrom4([4]byte(b[2:6])))
	}
	return out
}
