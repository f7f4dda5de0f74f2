//go:build linux

// What durable entities cost beside the engine itself, on a server that syncs each commit.

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/storebench"
	"github.com/kith-io/kith/store"
)

// schemas counts those that benchmarks have had.
var schemas atomic.Int64

// opener opens a store in a schema of its own at each call, until the benchmark that asks for it is over.
func opener(b *testing.B) func(*testing.B) store.Store {
	s := need(b)
	return func(b *testing.B) store.Store {
		ctx, name := context.Background(), fmt.Sprint("bench", schemas.Add(1))
		conn, err := pgx.Connect(ctx, s.URL())
		require.NoError(b, err)
		_, err = conn.Exec(ctx, "create schema "+name)
		require.NoError(b, errors.Join(err, conn.Close(ctx)))
		st, err := Open(ctx, s.url()+" search_path="+name)
		require.NoError(b, err)
		b.Cleanup(st.Close)
		return st
	}
}

func BenchmarkDurable(b *testing.B) { storebench.Rates(b, opener(b)) }

func BenchmarkLatency(b *testing.B) { storebench.Latency(b, opener(b)) }

func BenchmarkDelivery(b *testing.B) { storebench.Delivery(b, opener(b)) }
