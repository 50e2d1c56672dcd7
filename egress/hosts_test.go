package egress

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		desc    string
		entries []string
		allowed []string
		refused []string
	}{
		{"a name", []string{"PyPI.example"}, []string{"pypi.example:80", "PYPI.example:443", "pypi.example.:443"},
			[]string{"pypi.example:22", "x.pypi.example:443", "pypi.example.evil.test:443", "xpypi.example:443"}},
		{"a name and a port", []string{"git.example:8443"}, []string{"git.example:8443"}, []string{"git.example:443", "git.example:80"}},
		{"names below", []string{"*.example.org"}, []string{"a.example.org:80", "a.b.example.org:443"},
			[]string{"example.org:443", ".example.org:443", "aexample.org:443", "a.example.org:8080", "a.example.org.evil.test:80"}},
		{"names below with a port", []string{"*.example.org:444"}, []string{"a.example.org:444"}, []string{"a.example.org:443"}},
		{"every host", []string{"*"}, []string{"a.test:80", "1.2.3.4:443", "[2606:4700::1]:443"}, []string{"a.test:22", "1.2.3.4:8080"}},
		{"every host on a port", []string{"*:8080"}, []string{"a.test:8080"}, []string{"a.test:80"}},
		{"addresses", []string{"192.0.2.1", "[2001:db8::1]:444", "2001:db8::2"},
			[]string{"192.0.2.1:80", "[::ffff:192.0.2.1]:80", "[2001:db8::1]:444", "[2001:DB8:0::1]:444", "[2001:db8::2]:443"},
			[]string{"192.0.2.2:80", "[2001:db8::1]:443"}},
		{"no address is below a name", []string{"*.2.1"}, nil, []string{"192.0.2.1:80"}},
		{"several", []string{"a.test", "b.test:81"}, []string{"a.test:80", "b.test:81"}, []string{"a.test:81", "b.test:80"}},
		{"none", nil, nil, []string{"a.test:80", "127.0.0.1:80"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			hosts, err := ParseHosts(c.entries)
			require.NoError(t, err)
			p := Proxy{hosts: hosts}
			for _, address := range c.allowed {
				require.NoError(t, p.allow(address), address)
			}
			for _, address := range c.refused {
				require.Error(t, p.allow(address), address)
			}
		})
	}
}

func TestHostsThatAreNone(t *testing.T) {
	for _, entry := range []string{"", "a b", "http://a.test", "a.test/x", "a.test:", "a.test:0", "a.test:99999", "a.*.test", "*x.test", "*.", "*.*.test", "user@a.test", "ä.test", "a.test,b.test", "10.0.0.0/8"} {
		_, err := ParseHosts([]string{entry})
		require.Error(t, err, entry)
	}
}

func TestDestinationsThatAreNone(t *testing.T) {
	hosts, err := ParseHosts([]string{"*"})
	require.NoError(t, err)
	p := Proxy{hosts: hosts}
	for _, address := range []string{"", ":80", "a.test", "a.test:", "a.test:0", "a.test:http", "a.test:99999", "a.test:-1", "[::1", "::1:80"} {
		err := p.allow(address)
		var r *refusal
		require.ErrorAs(t, err, &r, address)
		require.Equal(t, 400, r.status, address)
	}
}
