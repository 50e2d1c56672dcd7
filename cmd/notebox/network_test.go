package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// networkPatience is how long a busy machine may take for anything.
const networkPatience = 2 * time.Minute

// networkService is a service whose runs reach what is outside, by what its
// operator says of it.
func networkService(t *testing.T, o *outside) *program {
	t.Helper()
	folder := t.TempDir()
	hosts := o.plain.Listener.Addr().String() + "," + o.secure.Listener.Addr().String()
	p, stop, err := start(folder, "--service-id", serviceID+"-network", "--pool-size", "1", "--pool-max", "1",
		"--max-timeout", "10m", "--allow-network", "*,"+hosts, "--egress-allow-private", hosts, "--egress-ca", o.ca)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, stop())
		if t.Failed() {
			printErrors(folder + "/log")
		}
	})
	return p
}

// requireRun runs cells that must raise nothing.
func requireRun(t *testing.T, p *program, network bool, cells ...string) string {
	t.Helper()
	r := executeOn(t, p, map[string]any{"network": network, "timeout": 300, "cells": cells})
	require.Equal(t, "ok", r.Status, "%s\n%s", r.Text, r.Hint)
	return r.Text
}

// where are the servers, for a cell.
func (o *outside) where() string {
	return fmt.Sprintf("plain, secure = %q, %q\nimport os, subprocess, sys, hashlib, urllib.request, urllib.error, requests\n", o.plain.URL, o.secure.URL)
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	p := networkService(t, o)

	t.Run("tools", func(t *testing.T) {
		for desc, code := range map[string]string{
			"urllib":   "for base in plain, secure:\n    assert urllib.request.urlopen(base + '/hello').read() == b'hello from outside'",
			"requests": "for base in plain, secure:\n    assert requests.get(base + '/hello').text == 'hello from outside'",
			"curl":     "for base in plain, secure:\n    assert subprocess.check_output(['curl', '-fsS', base + '/hello']) == b'hello from outside'",
			"pip": `for n, base in enumerate((plain, secure)):
    trust = ['--trusted-host', plain[7:]] if base is plain else []
    subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--index-url', base + '/simple', *trust, '--target', f'/tmp/packages{n}', 'notebox-probe'], check=True)
    sys.path.insert(0, f'/tmp/packages{n}')
    import notebox_probe
    assert notebox_probe.ANSWER == 42
    del sys.modules['notebox_probe']`,
			"pip in a virtual environment": `subprocess.run(['python3', '-m', 'venv', '/tmp/v'], check=True)
subprocess.run(['/tmp/v/bin/pip', 'install', '-q', '--index-url', secure + '/simple', 'notebox-probe'], check=True)
subprocess.run(['/tmp/v/bin/python', '-c', 'import notebox_probe'], check=True)`,
			"many at once": `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(100) as pool:
    assert set(pool.map(lambda n: requests.get((plain, secure)[n % 2] + '/hello').text, range(300))) == {'hello from outside'}`,
		} {
			t.Run(desc, func(t *testing.T) { requireRun(t, p, true, o.where()+code) })
		}
	})
	t.Run("git", func(t *testing.T) {
		o.makeRepository(t, p)
		text := requireRun(t, p, true, o.where()+`for n, base in enumerate((plain, secure)):
    subprocess.run(['git', 'clone', '-q', base + '/repository', f'/tmp/clone{n}'], check=True)
    print(open(f'/tmp/clone{n}/README').read())`)
		require.Equal(t, 2, strings.Count(text, "from the repository"))
	})
	t.Run("much, both ways", func(t *testing.T) {
		requireRun(t, p, true, o.where()+`for base in plain, secure:
    content = requests.get(base + '/big').content
    assert len(content) == `+fmt.Sprint(bigFile)+`
    assert requests.post(base + '/sum', data=content).text == hashlib.sha256(content).hexdigest()
    open('/mnt/data/big', 'wb').write(content)
    got = subprocess.check_output(['curl', '-fsS', '-T', '/mnt/data/big', base + '/sum'], text=True)
    assert got == hashlib.sha256(content).hexdigest()
os.remove('/mnt/data/big')`)
	})
	t.Run("outputs go on", func(t *testing.T) {
		requireRun(t, p, true, o.where()+`import threading
def load():
    try:
        for _ in requests.get(plain + '/endless', stream=True).iter_content(100000): pass
    except Exception: pass
for _ in range(3): threading.Thread(target=load, daemon=True).start()
unread = requests.get(secure + '/endless', stream=True)`, "for i in range(2000): print(i)", "print('the last')")
	})
	t.Run("refused", func(t *testing.T) { o.testRefused(t, p) })
	t.Run("the end of a run", func(t *testing.T) { o.testEnd(t, p) })
	t.Run("without", func(t *testing.T) { testWithoutNetwork(t, p) })
	t.Run("trace", func(t *testing.T) { testNetworkTrace(t, p) })
	t.Run("variables of the request", func(t *testing.T) {
		r := executeOn(t, p, map[string]any{"network": true, "timeout": 120, "env": map[string]string{"A": "b", "NO_PROXY": "mine"}, "code": o.where() + `
assert (os.environ['A'], os.environ['NO_PROXY']) == ('b', 'mine')
assert requests.get(secure + '/hello').text == 'hello from outside'`})
		require.Equal(t, "ok", r.Status, r.Text)
	})
}

// testRefused: what is not to be reached is refused, within seconds and with a reason.
func (o *outside) testRefused(t *testing.T, p *program) {
	own := p.url()
	text := requireRun(t, p, true, o.where()+`
os.environ['no_proxy'] = os.environ['NO_PROXY'] = ''
def ask(url):
    r = requests.get(url, timeout=60)
    print(url, r.status_code, r.text)
for url in ['http://169.254.169.254/latest/meta-data/', 'http://127.0.0.1/', 'http://localhost/', 'http://[::1]/', 'http://[::ffff:127.0.0.1]/',
            'http://10.0.0.1/', 'http://0.0.0.0/', 'http://localhost.localdomain/', '`+own+`/healthz', 'http://not-listed.test:8080/', plain + '/inwards']:
    ask(url)
for url in ['https://169.254.169.254/', 'https://localhost/', 'https://not-listed.test:8443/']:
    try:
        requests.get(url, timeout=60)
    except requests.exceptions.ProxyError as e:
        print(url, e)
print(subprocess.run(['curl', '-sS', 'https://127.0.0.1/'], capture_output=True, text=True).stderr)
`)
	for _, line := range []string{
		"http://169.254.169.254/latest/meta-data/ 403 notebox: no connection to \"169.254.169.254\": it is not at an address that may be reached",
		"http://127.0.0.1/ 403 ", "http://localhost/ 403 ", "http://[::1]/ 403 ", "http://[::ffff:127.0.0.1]/ 403 ", "http://10.0.0.1/ 403 ", "http://0.0.0.0/ 403 ",
		own + "/healthz 403 ", "/inwards 403 ",
		"http://not-listed.test:8080/ 403 notebox: no connection to \"not-listed.test:8080\": it is not among the hosts that this service's operator allows",
		"curl: (56) CONNECT tunnel failed, response 403",
	} {
		require.Contains(t, text, line)
	}
	require.Equal(t, 3, strings.Count(text, "Tunnel connection failed: 403 Forbidden"), text)
	require.Regexp(t, `localhost\.localdomain/ (403|502) `, text)
	r := executeOn(t, p, map[string]any{"network": true, "timeout": 120, "code": "import socket\nsocket.getaddrinfo('example.org', 80)"})
	require.Contains(t, r.Hint, "only through the proxy", "past the proxy there is nothing, not even names")
}

// testEnd: with a run its connections end, however it ends.
func (o *outside) testEnd(t *testing.T, p *program) {
	endless := o.where() + "for _ in requests.get(plain + '/endless', stream=True).iter_content(100000): pass"
	for _, c := range []struct {
		desc, status, code string
		timeout            float64
	}{
		{"its time is over", "timeout", endless, 3},
		{"it dies", "killed", o.where() + "r = requests.get(plain + '/endless', stream=True)\nos.kill(os.getpid(), 9)", 120},
		{"it raises", "error", o.where() + "r = requests.get(secure + '/endless', stream=True)\n1/0", 120},
	} {
		t.Run(c.desc, func(t *testing.T) {
			for len(o.left) > 0 {
				<-o.left
			}
			before := o.endless.Load()
			r := executeOn(t, p, map[string]any{"network": true, "timeout": c.timeout, "code": c.code})
			require.Equal(t, c.status, r.Status, r.Text)
			if o.endless.Load() == before { // its time was over before it came so far
				return
			}
			select {
			case <-o.left:
			case <-time.After(networkPatience):
				require.FailNow(t, "a connection outlives its run")
			}
		})
	}
}

// testWithoutNetwork: a run that asks for none has none, beside runs that do.
func testWithoutNetwork(t *testing.T, p *program) {
	text := requireRun(t, p, false, `import os, socket
print([name for name in os.environ if 'proxy' in name.lower() or 'CERT' in name or 'CA' in name])
print(socket.socket().connect_ex(('127.0.0.1', 3128)), os.path.exists('/run/notebox/ca.pem'))
print([line.split()[1] for line in open('/proc/net/tcp') if line.split()[3] == '0A' and line.split()[1].endswith(':0C38')])`)
	require.Equal(t, "[]\n111 False\n[]", strings.TrimSpace(text))
	status, raw := post(t, suite.program.url()+"/v1/execute", "application/json", []byte(`{"code":"1","network":true}`))
	require.Equal(t, http.StatusForbidden, status, "%s", raw)
	require.Contains(t, string(raw), "network: this service's operator allows none")
}

// testNetworkTrace: a warm kernel that is told of its network differs from one that is not
// by the variables alone.
func testNetworkTrace(t *testing.T, p *program) {
	code, err := os.ReadFile("testdata/warm/state.py")
	require.NoError(t, err)
	observe := func(network bool) map[string]json.RawMessage {
		require.Eventually(t, func() bool { return poolOf(t, p.url()).Warm > 0 }, networkPatience, 50*time.Millisecond)
		r := executeOn(t, p, map[string]any{"network": network, "timeout": 120, "code": string(code)})
		require.Equal(t, "ok", r.Status, r.Text)
		var seen map[string]map[string]json.RawMessage
		decode(t, []byte(r.Outputs[0].Text), &seen)
		return flatten(seen["start"])
	}
	with, without := observe(true), observe(false)
	var differ []string
	for name, value := range with {
		if string(without[name]) != string(value) && !isKnown("start", name) {
			differ = append(differ, name)
		}
	}
	for name := range without {
		if _, ok := with[name]; !ok {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	require.Equal(t, []string{
		"env.ALL_PROXY", "env.CURL_CA_BUNDLE", "env.GIT_SSL_CAINFO", "env.HTTPS_PROXY", "env.HTTP_PROXY", "env.NODE_EXTRA_CA_CERTS",
		"env.NO_PROXY", "env.PIP_CERT", "env.REQUESTS_CA_BUNDLE", "env.SSL_CERT_FILE",
		"env.all_proxy", "env.http_proxy", "env.https_proxy", "env.no_proxy",
	}, differ)
}

func TestNetworkSettings(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for _, c := range []struct {
		desc     string
		settings networkSettings
		err      string // "": a network, or none
		none     bool
	}{
		{"nothing", networkSettings{}, "", true},
		{"hosts", networkSettings{hosts: list{"*", "a.test:8080", "*.b.test"}, private: list{"a.test:8080", "10.0.0.0/8"}}, "", false},
		{"no host", networkSettings{hosts: list{"http://a.test"}}, "--allow-network: ", false},
		{"no exception", networkSettings{hosts: list{"*"}, private: list{"*"}}, "--egress-allow-private: ", false},
		{"exceptions of nothing", networkSettings{private: list{"a.test"}}, "--allow-network says which", false},
		{"no file", networkSettings{hosts: list{"*"}, ca: folder + "/none"}, "--egress-ca: ", false},
		{"no certificate", networkSettings{hosts: list{"*"}, ca: write("text", "text")}, "no certificate in PEM", false},
		{"too large", networkSettings{hosts: list{"*"}, ca: write("large", strings.Repeat("x", maxCA+1))}, "is larger than", false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			n, err := c.settings.open(nil, "127.0.0.1:8080")
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.none, n == nil)
		})
	}
	key := newOutside(t)
	pem, err := os.ReadFile(key.ca)
	require.NoError(t, err)
	withKey := networkSettings{hosts: list{"*"}, ca: write("key", string(pem)+"-----BEGIN PRIVATE KEY-----\n")}
	_, err = withKey.open(nil)
	require.ErrorContains(t, err, "private key")
}
