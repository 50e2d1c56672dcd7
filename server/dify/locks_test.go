package dify

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocks(t *testing.T) {
	var all locks
	release, err := all.take(context.Background(), "a")
	require.NoError(t, err)
	other, err := all.take(context.Background(), "b")
	require.NoError(t, err, "another name's is another lock")
	other()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	_, err = all.take(ctx, "a")
	require.ErrorIs(t, err, enough)
	taken := make(chan func())
	go func() {
		next, _ := all.take(context.Background(), "a")
		taken <- next
	}()
	release()
	(<-taken)()
	require.Empty(t, all.held, "nobody wants one")
}
