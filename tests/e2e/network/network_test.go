package network

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// networkPatience is how long a busy machine may take for anything.
const networkPatience = 2 * time.Minute

// networkService is a service whose runs reach what is outside, by what its
// operator says of it.
func networkService(t *testing.T, o *outside) *service.Service {
	t.Helper()
	hosts := o.plain.Listener.Addr().String() + "," + o.secure.Listener.Addr().String()
	return service.Start(t, "network", "--pool-size", "1", "--pool-max", "1",
		"--max-timeout", "10m", "--allow-network", "*,"+hosts, "--egress-allow-private", hosts, "--egress-ca", o.ca)
}

// requireRun runs cells that must raise nothing.
func requireRun(t *testing.T, p *service.Service, network bool, cells ...string) string {
	t.Helper()
	r := p.Execute(t, map[string]any{"network": network, "timeout": 300, "cells": cells})
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
	t.Run("variables of the request", func(t *testing.T) {
		r := p.Execute(t, map[string]any{"network": true, "timeout": 120, "env": map[string]string{"A": "b", "NO_PROXY": "mine"}, "code": o.where() + `
assert (os.environ['A'], os.environ['NO_PROXY']) == ('b', 'mine')
assert requests.get(secure + '/hello').text == 'hello from outside'`})
		require.Equal(t, "ok", r.Status, r.Text)
	})
}

// testRefused: what is not to be reached is refused, within seconds and with a reason.
func (o *outside) testRefused(t *testing.T, p *service.Service) {
	own := p.URL
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
	r := p.Execute(t, map[string]any{"network": true, "timeout": 120, "code": "import socket\nsocket.getaddrinfo('example.org', 80)"})
	require.Contains(t, r.Hint, "only through the proxy", "past the proxy there is nothing, not even names")
}

// testEnd: with a run its connections end, however it ends.
func (o *outside) testEnd(t *testing.T, p *service.Service) {
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
			r := p.Execute(t, map[string]any{"network": true, "timeout": c.timeout, "code": c.code})
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
func testWithoutNetwork(t *testing.T, p *service.Service) {
	text := requireRun(t, p, false, `import os, socket
print([name for name in os.environ if 'proxy' in name.lower() or 'CERT' in name or 'CA' in name])
print(socket.socket().connect_ex(('127.0.0.1', 3128)), os.path.exists('/run/notebox/ca.pem'))
print([line.split()[1] for line in open('/proc/net/tcp') if line.split()[3] == '0A' and line.split()[1].endswith(':0C38')])`)
	require.Equal(t, "[]\n111 False\n[]", strings.TrimSpace(text))
	status, raw := service.Post(t, shared.URL+"/v1/execute", "application/json", []byte(`{"code":"1","network":true}`))
	require.Equal(t, http.StatusForbidden, status, "%s", raw)
	require.Contains(t, string(raw), "network: this service's operator allows none")
}
