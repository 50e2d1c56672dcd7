package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/fetch"
	"notebox/storage"
)

func TestWithoutKey(t *testing.T) {
	key := storage.RunKey(time.Now(), "run_1", storage.KindFile, "folder/my secret.csv")
	for _, c := range []struct {
		desc string
		err  error
		want string
	}{
		{"a full disk", fmt.Errorf("put %q: %w", key, &fs.PathError{Op: "open", Path: "/var/" + key, Err: syscall.ENOSPC}), "no space left on device"},
		{"a time limit", fmt.Errorf("put %q: %w", key, context.DeadlineExceeded), "context deadline exceeded"},
		{"a store that quotes", errors.New("no object " + key), "an error of type *errors.errorString"},
		{"one that escapes", errors.New("404 for " + url.PathEscape("my secret.csv")), "an error of type *errors.errorString"},
		{"two in one", errors.Join(fmt.Errorf("put %q", key), syscall.EACCES), "permission denied"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			err := WithoutKey(c.err, key)
			require.Equal(t, c.want, err.Error())
			require.ErrorIs(t, err, c.err, "it is still what it was")
		})
	}
	require.Equal(t, "no images/ here", WithoutKey(errors.New("no images/ here"), storage.RunKey(time.Now(), "run_1", storage.KindNotebook, "")).Error(), "a key without a name hides nothing")
}

func TestWithoutURL(t *testing.T) {
	of := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://secret.example/f?sig=secret", Err: err}
	}
	for _, c := range []struct {
		desc string
		err  error
		want string
	}{
		{"ours", of(fetch.ErrDown), "it redirects from https to http"},
		{"no such host", of(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "secret.example"}}), "lookup: no such host"},
		{"nobody listens", of(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "connection refused"},
		{"another", of(errors.New("secret.example is odd")), "an error of type *errors.errorString"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			err := fetch.WithoutURL(c.err)
			require.Equal(t, c.want, err.Error())
			require.ErrorIs(t, err, c.err)
		})
	}
}
