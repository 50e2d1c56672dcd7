package dependencies

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeparate: what goes into an installer's sandbox has no credentials, and the service
// has them all.
func TestSeparate(t *testing.T) {
	const basicAB, basicT = "Basic YTpi", "Basic dG9rZW46" // a:b, token:
	for _, c := range []struct {
		desc, file, given, public string
		found                     []Credential
	}{
		{desc: "none", file: "pip.conf", given: "[global]\nindex-url = https://a.test/simple\n", public: "[global]\nindex-url = https://a.test/simple\n"},
		{
			desc: "an index", file: "pip.conf", given: "[global]\nindex-url = https://a:b@A.test/simple\n", public: "[global]\nindex-url = https://A.test/simple\n",
			found: []Credential{{"https", "a.test:443", "/simple", basicAB}},
		},
		{
			desc: "a token alone, two hosts, ports", file: "pip.conf", given: "index-url=http://token@a.test:81/s/\nextra-index-url =\n  https://a:b@[::1]:8443/x\n",
			public: "index-url=http://a.test:81/s/\nextra-index-url =\n  https://[::1]:8443/x\n",
			found:  []Credential{{"http", "a.test:81", "/s/", basicT}, {"https", "[::1]:8443", "/x", basicAB}},
		},
		{
			desc: "an @ in the password, percent-encoding", file: "pip.conf", given: "index-url = https://%61:b@c%3a@a.test/", public: "index-url = https://a.test/",
			found: []Credential{{"https", "a.test:443", "/", "Basic YTpiQGM6"}},
		},
		{desc: "a comment", file: "pip.conf", given: "[global]\n# https://a:b@a.test/\n ; s3cret\ntimeout = 5", public: "[global]\ntimeout = 5"},
		{desc: "a proxy", file: "pip.conf", given: "[global]\nproxy = a:b@proxy.test:3128\ntimeout = 5\n[install]\nProxy:\n  http://a:b@proxy.test:3128", public: "[global]\ntimeout = 5\n[install]\n"},
		{desc: "a proxy among options that are indented", file: "pip.conf", given: "[global]\n  proxy = a:b@proxy.test:3128\n  timeout = 5\n", public: "[global]\n  timeout = 5\n"},
		{desc: "npm's proxy", file: "npmrc", given: "proxy=a:b@proxy.test:3128\n https-proxy = http://a:b@proxy.test:3128\nstrict-ssl=true\n", public: "strict-ssl=true\n"},
		{
			desc: "lines of other systems", file: "npmrc", given: "strict-ssl=true\r//a.test/:_authToken=tok\r\n", public: "strict-ssl=true\n",
			found: []Credential{{"https", "a.test:443", "/", "Bearer tok"}},
		},
		{desc: "what is no web address", file: "pip.conf", given: "constraint = ftp://a:b@a.test/c", public: "constraint = ftp://a.test/c"},
		{
			desc: "of apt", file: "sources.list", given: "deb [signed-by=/k] https://a:b@a.test/debian trixie main\n", public: "deb [signed-by=/k] https://a.test/debian trixie main\n",
			found: []Credential{{"https", "a.test:443", "/debian", basicAB}},
		},
		{
			desc: "of apt, the other format", file: "sources.list", given: "Types: deb\nURIs: https://a:b@a.test/debian\n", public: "Types: deb\nURIs: https://a.test/debian\n",
			found: []Credential{{"https", "a.test:443", "/debian", basicAB}},
		},
		{
			desc: "npm's token", file: "npmrc", given: "registry=https://a.test/npm/\n@x:registry=https://b.test/@y/\n//a.test/npm/:_authToken=tok\n//b.test:81/:always-auth=true\nstrict-ssl=true\n",
			public: "registry=https://a.test/npm/\n@x:registry=https://b.test/@y/\nstrict-ssl=true\n",
			found:  []Credential{{"https", "a.test:443", "/npm/", "Bearer tok"}},
		},
		{
			desc: "npm's, in the clear if the registry is", file: "npmrc", given: "registry=http://a.test:81/\n//a.test:81/:_auth=YTpi\n", public: "registry=http://a.test:81/\n",
			found: []Credential{{"https", "a.test:81", "/", basicAB}, {"http", "a.test:81", "/", basicAB}},
		},
		{
			desc: "npm's name and password", file: "npmrc", given: "//a.test/:username = a\n//a.test/:_password = \"Yg==\"\n//a.test/:_auth=none\n",
			found: []Credential{{"https", "a.test:443", "/", basicAB}},
		},
		{
			desc: "npm's quotes and comments", file: "npmrc", given: "\"//a.test/:_authToken\" = 'to;k'\n//b.test/:_authToken=t\\;k ; s3cret\n",
			found: []Credential{{"https", "a.test:443", "/", "Bearer to;k"}, {"https", "b.test:443", "/", "Bearer t;k"}},
		},
		{desc: "npm's of no host", file: "npmrc", given: "_authToken=s3cret\n_auth = s3cret\nkey=\"s3cret\"\ncert[]=s3cret\npassword=s3cret\n@key:registry=https://a.test/\n", public: "@key:registry=https://a.test/\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			public, found, err := Separate(map[string][]byte{c.file: []byte(c.given)})
			require.NoError(t, err)
			require.Equal(t, c.public, string(public[c.file]))
			require.Equal(t, c.found, found)
		})
	}
}

// TestSeparateByScheme: npm's token for https goes nowhere in the clear, whatever other
// clients' settings say of its host.
func TestSeparateByScheme(t *testing.T) {
	_, found, err := Separate(map[string][]byte{
		"npmrc":        []byte("registry=https://a.test/npm/\n//a.test/npm/:_authToken=tok\n"),
		"pip.conf":     []byte("index-url = http://a.test/simple\n"),
		"sources.list": []byte("deb http://a.test/debian trixie main\n"),
	})
	require.NoError(t, err)
	require.Equal(t, []Credential{{"https", "a.test:443", "/npm/", "Bearer tok"}}, found)
}

// TestSeparateRefuses what it cannot tell the credentials of, and does not quote it.
func TestSeparateRefuses(t *testing.T) {
	for _, given := range []string{
		"index-url = https://me:s3/cret@a.test/", "index-url = https://me:s3#cret@a.test/", "index-url = https://me:s3?cret@a.test/",
	} {
		_, _, err := Separate(map[string][]byte{"pip.conf": []byte(given)})
		require.ErrorContains(t, err, "pip.conf: a URL has a host that cannot be read")
		require.NotContains(t, err.Error(), "s3")
	}
}

// FuzzSeparate: no name or password of a URL is left.
func FuzzSeparate(f *testing.F) {
	f.Add("[global]\nindex-url = ", "/simple\n")
	f.Add("//a.test/:_authToken=x\nregistry=\"", "\"\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		given := before + " https://canary:c4n4ry@a.test" + after
		for _, name := range []string{"pip.conf", "npmrc", "sources.list"} {
			public, _, err := Separate(map[string][]byte{name: []byte(given)})
			if err == nil && !strings.Contains(before+after, "c4n4ry") && !strings.Contains(before+after, "canary") {
				require.NotContains(t, string(public[name]), "c4n4ry")
			}
		}
	})
}
