// Tests of what Ready says that a node waits for, over real sockets.

package e2e_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/port"
)

// records is a slog handler that keeps what it gets.
type records struct {
	slog.Handler
	list atomic.Pointer[[]slog.Record]
}

func newRecords() *records {
	r := &records{Handler: slog.DiscardHandler}
	r.list.Store(&[]slog.Record{})
	return r
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	for {
		old := r.list.Load()
		next := append((*old)[:len(*old):len(*old)], rec.Clone())
		if r.list.CompareAndSwap(old, &next) {
			return nil
		}
	}
}

// find returns the records with a message, in order, each with its attributes.
func (r *records) find(message string) (list []map[string]any) {
	for _, rec := range *r.list.Load() {
		if rec.Message == message {
			m := map[string]any{slog.LevelKey: rec.Level}
			rec.Attrs(func(a slog.Attr) bool { m[a.Key] = a.Value.Resolve().Any(); return true })
			list = append(list, m)
		}
	}
	return list
}

// awaitNotReady calls Ready with short times until it says that the node waits for that.
func awaitNotReady(t *testing.T, n *kith.Node, want kith.WaitKind) *kith.NotReadyError {
	t.Helper()
	var last *kith.NotReadyError
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		err := n.Ready(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, err, &last)
		return last.For == want
	}, "Ready names %v", want)
	return last
}

// JOIN-2: Ready names a seed that does not answer, and what the system says, as a type and in the log.
func TestReadyNamesADeadSeed(t *testing.T) {
	t.Parallel()
	seed := port.Keep(t)
	log := newRecords()
	n := start(t, logger(t), kith.Config{Seeds: []string{seed}, Logger: slog.New(log)})
	var why *kith.NotReadyError
	eventually(t, func() bool {
		why = awaitNotReady(t, n, kith.WaitSeeds)
		return why.Detail == "no seed answers: "+seed+" (connect: connection refused)"
	}, "the reason")
	require.Len(t, why.Addrs, 1)
	require.Equal(t, seed, why.Addrs[0].String())
	require.EqualError(t, why, "kith: not up yet: context deadline exceeded: "+why.Detail)
	var list []map[string]any
	eventually(t, func() bool {
		list = log.find("gave up waiting until this node is up")
		return len(list) > 0 && list[len(list)-1]["why"] == why.Detail
	}, "it is in the log")
	last := list[len(list)-1]
	require.Equal(t, []any{slog.LevelWarn, "seeds", why.Detail}, []any{last["level"], last["waits_for"], last["why"]})
}

// JOIN-1: Ready names the setting in which this node and a seed differ, with both values: one that a hello compares,
// and the name of the cluster. One that a join compares ends the node, and is named by the error of its end.
func TestReadyNamesSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	l := logger(t)
	seed := start(t, l, kith.Config{MaxPayload: 1 << 20})
	seeds := []string{seed.Addr().String()}
	require.NoError(t, seed.Ready(within(t)))
	why := awaitNotReady(t, start(t, l, kith.Config{Seeds: seeds, MaxPayload: 2 << 20}), kith.WaitSettings)
	require.Equal(t, []string{"max-payload", "2097152", "1048576"}, []string{why.Setting, why.Ours, why.Theirs})
	require.Equal(t, seed.Addr(), why.Addrs[0])
	require.Contains(t, why.Error(), `max-payload differs: ours "2097152", theirs "1048576"`)
	why = awaitNotReady(t, start(t, l, kith.Config{Seeds: seeds, Name: "other"}), kith.WaitSettings)
	require.Equal(t, []string{"cluster name", "other", "another"}, []string{why.Setting, why.Ours, why.Theirs})
	tuning := quick()
	tuning.Settings = []kith.Setting{{Key: "currency", Value: "EUR"}}
	euro := start(t, l, kith.Config{Membership: tuning})
	tuning.Settings = []kith.Setting{{Key: "currency", Value: "GBP"}}
	err := start(t, l, kith.Config{Membership: tuning, Seeds: []string{euro.Addr().String()}}).Ready(within(t))
	var ended *kith.EndedError
	require.ErrorAs(t, err, &ended)
	require.ErrorContains(t, err, `setting "currency" is "EUR" in the cluster and "GBP" at the joiner`)
}

// Ready names certificates: a seed's that this node does not believe, and its own that the seed does not believe; and
// that one of the two has none.
func TestReadyNamesCertificates(t *testing.T) {
	t.Parallel()
	l := logger(t)
	good, err := pki.NewCA("good", time.Hour)
	require.NoError(t, err)
	bad, err := pki.NewCA("bad", time.Hour)
	require.NoError(t, err)
	creds := func(prove *pki.CA, believe ...*pki.CA) kith.TLS {
		c := issued(t, prove, "test")
		for _, ca := range believe {
			require.True(t, c.CAs.AppendCertsFromPEM(ca.Pair().Cert))
		}
		return kith.TLS{Load: func() (kith.Credentials, error) { return c, nil }}
	}
	seed := start(t, l, kith.Config{TLS: creds(good)})
	seeds := []string{seed.Addr().String()}
	for name, tls := range map[string]kith.TLS{"theirs": creds(bad), "ours": creds(bad, good)} {
		t.Run(name, func(t *testing.T) {
			why := awaitNotReady(t, start(t, l, kith.Config{Seeds: seeds, TLS: tls}), kith.WaitCertificate)
			require.Equal(t, seed.Addr(), why.Addrs[0])
			require.Contains(t, why.Detail, map[string]string{"theirs": "unknown-ca", "ours": "refused-by-peer"}[name])
		})
	}
	why := awaitNotReady(t, start(t, l, kith.Config{Seeds: seeds}), kith.WaitSettings)
	require.Equal(t, "TLS", why.Setting)
}

// Ready names members that are still to come.
func TestReadyNamesMembersToCome(t *testing.T) {
	t.Parallel()
	tuning := quick()
	tuning.MinMembers = 2
	why := awaitNotReady(t, start(t, logger(t), kith.Config{Membership: tuning}), kith.WaitMembers)
	require.Contains(t, why.Detail, "1 of at least 2")
}
