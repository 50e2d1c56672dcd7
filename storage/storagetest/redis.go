package storagetest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisUser is whom Redis lets in for notebox, with RedisCommands alone.
const (
	RedisUser     = "notebox"
	RedisCommands = "+eval +evalsha +script|load +time +hget +hset +hmget +hgetall +zadd +zrem +zremrangebyscore +zrange +zcard +del +expire +pexpire +hello +select"
)

// Redis starts a Redis or Valkey that keeps nothing over a Stop. It lets in RedisUser, by a
// password that is in its URL, and for the test's own looks the user "default" by the same one.
// Each URL has a prefix of its own, and RedisUser may touch no keys but those that begin with
// "notebox".
func Redis(t testing.TB) *Server {
	t.Helper()
	return beginRedis(t, "redis", func(port int) []string { return []string{"--port", strconv.Itoa(port)} })
}

// RedisTLS is Redis behind the certificate and key of two files.
func RedisTLS(t testing.TB, certificate, key string) *Server {
	t.Helper()
	return beginRedis(t, "rediss", func(port int) []string {
		return []string{
			"--port", "0", "--tls-port", strconv.Itoa(port),
			"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no",
		}
	})
}

func beginRedis(t testing.TB, scheme string, listen func(port int) []string) *Server {
	t.Helper()
	program, folder, password := installed(t, "bin/redis-server"), t.TempDir(), randomText()
	s := &Server{name: "redis-server", command: func(port int) *exec.Cmd {
		command := exec.Command(program, append(listen(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--user", "default", "on", ">"+password, "~*", "+@all",
			"--user", RedisUser, "on", ">"+password, "~notebox*")...)
		command.Args = append(command.Args, strings.Fields(RedisCommands)...)
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
		if scheme == "rediss" { // whom it lets in is the test's to see
			connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
		}
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
			Scheme: scheme, User: url.UserPassword(RedisUser, password), Path: "/0",
			Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), RawQuery: url.Values{"prefix": {prefix}}.Encode(),
		}
		return u.String()
	}
	return s
}
