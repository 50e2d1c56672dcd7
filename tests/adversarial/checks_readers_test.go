package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// unreadReplies of 16 MB each are asked for and hardly read.
	unreadReplies = 20
	// unreadMemory is what a service may hold for them, bytes: less than their texts
	// alone are, and more than one run's work takes for a moment. The service before
	// held some 45 MB for each.
	unreadMemory = 384 << 20
	// readStep and readPiece are 3 KiB a second.
	readStep  = time.Second
	readPiece = 3 << 10
)

// startKeyed is startOwn with two keys.
func (t *Trial) startKeyed(ctx context.Context, name string) (s *Service, keys [2]string, stop func() []Failure, err error) {
	keys = [2]string{planted.canary.Secret("a key of " + name), planted.canary.Secret("another key of " + name)}
	file := filepath.Join(planted.folder, name+"-keys")
	if err = os.WriteFile(file, []byte(strings.Join(keys[:], "\n")+"\n"), 0o600); err == nil {
		s, stop, err = t.startOwn(ctx, planted.program, name, map[string]string{"api-keys-file": file})
	}
	return s, keys, stop, err
}

// slowReaders has one session put out 8 MB for each of many clients, which read 3 KiB a
// second, or events: the service holds little memory for them, and another key's run is
// answered.
func slowReaders(ctx context.Context, t *Trial) (out []Failure) {
	s, keys, stop, err := t.startKeyed(ctx, "slow-readers")
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	defer func() { out = append(out, stop()...) }()
	client := &Client{URL: s.URL, Seen: planted.canary.SearchAnswer}
	slow, other := &asker{ctx, client, keys[0], &out}, &asker{ctx, client, keys[1], &out}
	var session struct{ ID string }
	empty := "{}"
	opened := slow.ask("a session", http.StatusCreated, Request{Path: "/v1/sessions", Raw: &empty, Headers: map[string]string{"Content-Type": "application/json"}})
	if err := json.Unmarshal(opened.Body, &session); err != nil {
		return append(out, failed("a session: %v", err))
	}
	defer slow.close(opened)
	before, err := status(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		return append(out, failed("%v", err))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range unreadReplies {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			return append(out, failed("connection %d: %v", i, err))
		}
		body := fmt.Sprintf(`{"code":"print(('x' * 1023 + '\\n') * 8000)","session":%q,"timeout":60}`, session.ID)
		accept := []string{"application/json", "text/event-stream"}[i%2]
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\nAccept: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			executePath, keys[0], accept, len(body), body)
		if err != nil {
			return append(out, failed("connection %d: %v", i, err))
		}
		all.Go(func() { sip(ctx, conn) })
	}
	// The session's runs are in turn, so that this one is the last.
	slow.ask("the last run of the session", http.StatusOK, Request{Code: "print('last')", Fields: map[string]any{"session": session.ID}})
	other.ask("another key's run", http.StatusOK, Request{Code: "print('other')"})
	held := int64(0)
	for range 10 { // until garbage is collected
		now, err := status(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil {
			return append(out, failed("%v", err))
		}
		if held = now.resident - before.resident; held < unreadMemory {
			break
		}
		time.Sleep(readStep)
	}
	if held >= unreadMemory {
		out = append(out, failed("%d unread replies hold %d MiB", unreadReplies, held>>20))
	}
	return out
}

// sip reads a little now and then, until ctx ends.
func sip(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	tick := time.NewTicker(readStep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := io.CopyN(io.Discard, conn, readPiece); err != nil {
			return
		}
	}
}

const (
	idleConnections = 5000
	// idleMost is what a service has open for them: 4,096 connections by default, and what
	// it needs for itself.
	idleMost = 4096 + 200
	// idleLimit is above the 10 s for a request's headers.
	idleLimit = 30 * time.Second
)

// unkeyedConnections opens connections that say nothing. The service keeps descriptors
// for itself, another client is answered, and after some seconds all are closed.
func unkeyedConnections(ctx context.Context, t *Trial) (out []Failure) {
	s, keys, stop, err := t.startKeyed(ctx, "idle-connections")
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	defer func() { out = append(out, stop()...) }()
	var all []net.Conn
	defer func() {
		for _, conn := range all {
			_ = conn.Close()
		}
	}()
	for i := range idleConnections {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			return append(out, failed("connection %d: %v", i, err))
		}
		all = append(all, conn)
	}
	open := func() int {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		return len(entries)
	}
	if n := open(); n > idleMost {
		out = append(out, failed("%d idle connections have the service hold %d descriptors", idleConnections, n))
	}
	client := &Client{URL: s.URL, Seen: planted.canary.SearchAnswer}
	a := &asker{ctx, client, keys[0], &out}
	a.ask("a run beside them", http.StatusOK, Request{Code: "print(1)"})
	begun := time.Now()
	limit := loaded(idleLimit, t.load.highest())
	for open() > idleMost-4096 {
		if time.Since(begun) > limit {
			return append(out, Failure{Late: true, Text: fmt.Sprintf("%d descriptors are open after %v", open(), limit)})
		}
		time.Sleep(100 * time.Millisecond)
	}
	return out
}
