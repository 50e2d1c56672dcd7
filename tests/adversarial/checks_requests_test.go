package adversarial

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var requestChecks = map[string]Check{
	"endless_bodies":    endlessBodies,
	"announced_body":    announcedBody,
	"slow_clients":      slowClients,
	"changed_links":     changedLinks,
	"left_sandbox_ends": leftSandboxEnds,
	"left_queue":        leftQueue,
	"crowd":             crowd,
	"fetched_urls":      fetchedURLs,
	"two_keys":          twoKeys,
	"slow_readers":      slowReaders,
	"idle_connections":  unkeyedConnections,
}

// failed is one failure that no slowness explains.
func failed(format string, args ...any) Failure {
	return Failure{Text: fmt.Sprintf(format, args...)}
}

// maxEndless is what a service reads on of a body that it refused, and what the
// system's buffers hold, bytes.
const maxEndless = 100 << 20

// endless is a body that goes on while it is read.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Microsecond)
	for i := range p {
		p[i] = '#'
	}
	if e.sent.Add(int64(len(p))) > 2*maxEndless {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

// endlessBodies sends bodies without a length and without an end. They are refused, and
// not read for ever.
func endlessBodies(ctx context.Context, t *Trial) (out []Failure) {
	for contentType, prefix := range map[string]string{
		"application/json":                `{"code":"`,
		"text/plain":                      "",
		"multipart/form-data; boundary=b": "--b\r\nContent-Disposition: form-data; name=files; filename=a\r\n\r\n",
	} {
		body := new(endless)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Service.URL+executePath, io.MultiReader(strings.NewReader(prefix), body))
		if err != nil {
			return []Failure{failed("%v", err)}
		}
		req.Header.Set("Content-Type", contentType)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		res, err := client.Do(req)
		if err != nil {
			out = append(out, failed("%s: no answer: %v", contentType, err))
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || body.sent.Load() > maxEndless {
			out = append(out, failed("%s: HTTP %d after %d bytes", contentType, res.StatusCode, body.sent.Load()))
		}
	}
	return out
}

// announcedBody says that 10 GB come: if the client asks first, it is told at once;
// if it does not, soon.
func announcedBody(_ context.Context, t *Trial) (out []Failure) {
	for _, header := range []string{"Expect: 100-continue\r\n", ""} {
		conn, err := t.dial(patience)
		if err != nil {
			return []Failure{failed("%v", err)}
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000000000\r\n%s\r\n", executePath, header)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			out = append(out, failed("%q: no answer: %v", header, err))
		} else if _ = res.Body.Close(); res.StatusCode != http.StatusRequestEntityTooLarge {
			out = append(out, failed("%q: HTTP %d", header, res.StatusCode))
		}
		_ = conn.Close()
	}
	return out
}

// dial connects to the service; nothing on the connection lasts longer than limit.
func (t *Trial) dial(limit time.Duration) (net.Conn, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(t.Service.URL, "http://"))
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(limit))
	}
	return conn, err
}

const (
	slowConnections = 1000
	// slowStep is the time from one byte of a slow client to the next.
	slowStep = time.Second
	// slowLimit is above the 15 s that the service gives a body and the 10 s of headers.
	slowLimit = 60 * time.Second
)

// slowClients opens connections that send their headers, or their bodies, byte by byte.
// Each is dropped; good requests beside them are answered.
func slowClients(ctx context.Context, t *Trial) (out []Failure) {
	var all sync.WaitGroup
	var kept, refused atomic.Int64
	limit := loaded(slowLimit, t.load.highest())
	for i := range slowConnections {
		conn, err := t.dial(limit)
		if err != nil {
			return []Failure{failed("connection %d: %v", i, err)}
		}
		begin := "POST " + executePath + " HTTP/1.1\r\nHost: localhost\r\nX-A: "
		if i%2 == 0 {
			begin = "POST " + executePath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 60000\r\n\r\n"
		}
		all.Go(func() {
			defer conn.Close()
			stop := drip(conn, begin)
			defer stop()
			answer, err := io.ReadAll(conn)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				kept.Add(1)
			}
			if strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || len(answer) == 0 {
				refused.Add(1)
			}
		})
	}
	for range 3 {
		if err := t.next(ctx); err != nil {
			out = append(out, failed("beside slow clients: %v", err))
		}
	}
	all.Wait()
	if kept.Load() > 0 {
		out = append(out, Failure{Late: true, Text: fmt.Sprintf("%d slow clients are still connected after %v", kept.Load(), limit)})
	} else if refused.Load() != slowConnections {
		out = append(out, failed("%d of %d slow clients were dropped or got 408", refused.Load(), slowConnections))
	}
	return out
}

// drip writes begin, and then a byte each slowStep until stop is called.
func drip(conn net.Conn, begin string) (stop func()) {
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(slowStep)
		defer tick.Stop()
		_, err := io.WriteString(conn, begin)
		for err == nil {
			select {
			case <-over:
				return
			case <-tick.C:
				_, err = io.WriteString(conn, "x")
			}
		}
	}()
	return func() { close(over) }
}

// afterExpiry is when a link of the case is asked for after its end: both clocks are one.
const afterExpiry = 500 * time.Millisecond

// changedLinks has two runs, and asks for their files by links that were changed.
func changedLinks(ctx context.Context, t *Trial) (out []Failure) {
	answers, out := t.SendAll(ctx)
	if len(answers) != 2 || len(out) > 0 {
		return append(out, failed("there are %d replies", len(answers)))
	}
	other, good := answers[0].link("file:a.txt"), answers[1].link("file:a.txt")
	u, err := url.Parse(good)
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	another, _ := url.Parse(other)
	q := u.Query()
	expires, _ := strconv.ParseInt(q.Get("expires"), 10, 64)
	get := func(desc, link string, want int, method string) {
		path := strings.TrimPrefix(link, t.Service.URL)
		got, err := t.Client.Send(ctx, &Request{Method: method, Path: path}, nil)
		switch {
		case err != nil:
			out = append(out, failed("%s: %v", desc, err))
		case got[0].Status != want && want == http.StatusOK && time.Now().Unix() >= expires:
			out = append(out, Failure{Late: true, Text: desc + ": the link had expired before it was asked for"})
		case got[0].Status != want || want != http.StatusOK && got[0].Problem == nil && method != http.MethodHead:
			out = append(out, failed("%s: HTTP %d, not %d: %s", desc, got[0].Status, want, shown(string(got[0].Body))))
		}
	}
	with := func(name, value string) string {
		changed, _ := url.ParseQuery(u.RawQuery)
		changed.Set(name, value)
		return t.Service.URL + u.EscapedPath() + "?" + changed.Encode()
	}
	signature := q.Get("signature")
	get("as it is, with what chats add", good+"&utm_source=x", http.StatusOK, http.MethodGet)
	get("HEAD", good, http.StatusOK, http.MethodHead)
	get("a later end", with("expires", strconv.FormatInt(expires+1, 10)), http.StatusForbidden, http.MethodGet)
	get("the same end, written otherwise", with("expires", "0"+strconv.FormatInt(expires, 10)), http.StatusForbidden, http.MethodGet)
	get("no end", with("expires", ""), http.StatusForbidden, http.MethodGet)
	get("a longer signature", good+"A", http.StatusForbidden, http.MethodGet)
	get("a shorter signature", with("signature", signature[:len(signature)-1]), http.StatusForbidden, http.MethodGet)
	get("the signature's last bits", with("signature", signature[:len(signature)-1]+flipped(signature[len(signature)-1])), http.StatusForbidden, http.MethodGet)
	get("two signatures", good+"&signature="+signature, http.StatusForbidden, http.MethodGet)
	get("another run's signature", t.Service.URL+u.EscapedPath()+"?"+another.RawQuery, http.StatusForbidden, http.MethodGet)
	get("another file of the run", strings.Replace(good, "/a.txt?", "/b.txt?", 1), http.StatusForbidden, http.MethodGet)
	get("the folder", strings.Replace(good, "/a.txt?", "?", 1), http.StatusForbidden, http.MethodGet)
	get("up and down", strings.Replace(good, "/files/a.txt?", "/files/../files/a.txt?", 1), http.StatusNotFound, http.MethodGet)
	get("up, escaped", strings.Replace(good, "/a.txt?", "/..%2fa.txt?", 1), http.StatusNotFound, http.MethodGet)
	get("up, escaped twice", strings.Replace(good, "/a.txt?", "/..%252fa.txt?", 1), http.StatusForbidden, http.MethodGet)
	get("a backslash", strings.Replace(good, "/a.txt?", "%5ca.txt?", 1), http.StatusNotFound, http.MethodGet)
	get("a doubled slash", strings.Replace(good, "/a.txt?", "//a.txt?", 1), http.StatusNotFound, http.MethodGet)
	time.Sleep(time.Until(time.Unix(expires, 0)) + afterExpiry)
	get("expired", good, http.StatusForbidden, http.MethodGet)
	return out
}

// flipped is another letter of base64 that decodes to the same leading bits.
func flipped(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(letters[strings.IndexByte(letters, c)^1])
}
