package storagetest

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisUser is whom Redis lets in.
const RedisUser = "notebox"

// Redis starts a Redis or Valkey that keeps nothing over a Stop. It lets in RedisUser alone, by a
// password that is in its URL. Each URL has a prefix of its own, and the user may touch no keys
// but those that begin with "notebox".
func Redis(t testing.TB) *Server {
	t.Helper()
	program, folder, password := installed(t, "bin/redis-server"), t.TempDir(), randomText()
	s := &Server{name: "redis-server", command: func(port int) *exec.Cmd {
		command := exec.Command(program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no",
			"--user", "default", "off", "--user", RedisUser, "on", ">"+password, "~notebox*", "+@all")
		command.Args[0] = "redis-server" // Debian's program is several, by this name
		command.Dir = folder
		return command
	}}
	s.answers = func() error {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		defer connection.Close()
		_ = connection.SetDeadline(time.Now().Add(time.Second))
		if _, err := fmt.Fprintf(connection, "AUTH %s %s\r\n", RedisUser, password); err != nil {
			return err
		}
		line, err := bufio.NewReader(connection).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "+OK") {
			err = fmt.Errorf("AUTH: %s", line)
		}
		return err
	}
	s.begin(t)
	s.url = func(prefix string) string {
		u := url.URL{
			Scheme: "redis", User: url.UserPassword(RedisUser, password), Path: "/0",
			Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), RawQuery: url.Values{"prefix": {prefix}}.Encode(),
		}
		return u.String()
	}
	return s
}
