package ledger

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// fuzzRecords is a store whose records hold what somebody else put there.
type fuzzRecords struct {
	Store
	content map[string][]byte
}

func (r fuzzRecords) Read(_ context.Context, key string, _ int64) ([]byte, error) {
	if content, ok := r.content[key]; ok {
		return content, nil
	}
	return nil, storage.ErrNotFound
}

func (r fuzzRecords) PutNew(context.Context, string, []byte) error { return storage.ErrExists }

func (r fuzzRecords) Replace(context.Context, string, []byte) error { return nil }

func (r fuzzRecords) Delete(_ context.Context, key string) error { delete(r.content, key); return nil }

func (r fuzzRecords) List(_ context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key := range r.content {
			if strings.HasPrefix(key, folder+"/") && !yield(key, nil) {
				return
			}
		}
	}
}

// FuzzRecords reads a lease, a result and claims back from a store. Whatever they say, the
// answer is one that HTTP has, and a sweep ends.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"service":"other","instance":"i","expires":"2030-01-01T00:00:00Z","passing":true}`),
		[]byte(`{"expires":"2030-01-01T00:00:00Z","problem":{"status":422,"field":"code","text":"no","retry_after":1}}`),
		[]byte(`{"execution":"run_1","fingerprint":"f","made":"2026-01-01T00:00:00Z","closed":true}`))
	f.Add([]byte(`{}`), []byte(`{"expires":"9999-12-31T23:59:59Z","problem":{"status":-1,"text":"\u0000","retry_after":1e300}}`), []byte(`[`))
	f.Add([]byte(``), []byte(`{"expires":"2030-01-01T00:00:00Z","problem":{"status":99999}}`), []byte(`{"execution":"../../x"}`))
	f.Fuzz(func(t *testing.T, lease, result, newest []byte) {
		chain := ChainOf("", "key")
		records := fuzzRecords{content: map[string][]byte{
			ExecutionKey("", "run_1", recordLease):  lease,
			ExecutionKey("", "run_1", recordResult): result,
			ClaimKey(chain, 0):                      newest,
			ClaimKey(chain, 1):                      newest,
		}}
		now := func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) }
		b := &Book{store: records, now: now, service: "s", instance: "i", ttl: time.Hour}
		stands, failure, err := b.Look(t.Context(), "", "run_1")
		require.NoError(t, err)
		if failure != nil {
			require.Equal(t, Ended, stands)
			require.True(t, failure.Status.Known())
			require.GreaterOrEqual(t, failure.RetryAfter, time.Duration(0))
			require.LessOrEqual(t, failure.RetryAfter, maxStoredWait)
		}
		c, n, err := b.Last(t.Context(), chain)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, _, err = b.Look(t.Context(), "", c.Execution)
		require.NoError(t, err)
		b.Superseded(t.Context(), &Position{Chain: chain, Claim: 0, Made: now()})
		require.NoError(t, b.sweepExecution(t.Context(), ExecutionKey("", "run_1", recordLease)))
		require.NoError(t, b.SweepChain(t.Context(), chain))
	})
}
