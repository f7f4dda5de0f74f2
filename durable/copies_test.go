// Tests of what a receiver makes of copies, by messages as a sender's shard sends them.

package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// receives starts a node with a type of entities that note what they had, and returns what sends one a parcel.
func receives(t *testing.T, m store.Store) func(n note, body string) (outcome, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	require.Eventually(t, func() bool { // the cluster that forms next is a later one
		formed := node.View().Birth >> 20 // milliseconds; 0: it has not formed yet
		return formed > 0 && uint64(time.Now().UnixMilli()) > formed
	}, time.Minute, time.Millisecond)
	e, err := Register(node, Type[string, string, string]{Name: "had", Store: m, Shards: 1, SeenFor: time.Hour,
		Handle: func(tx *Tx[string], s *string) (string, error) {
			if *s == "no" {
				return "", errors.New("never")
			}
			if *s == "gone" {
				tx.Delete()
			}
			*tx.State += *s
			return *tx.State, nil
		}})
	require.NoError(t, err)
	return func(n note, body string) (outcome, string) {
		t.Helper()
		if n.from == "" {
			r, err := e.Ask(ctx, "x", &body)
			require.NoError(t, err)
			return 0, r
		}
		if n.kind == 0 {
			n.kind = kindParcel
		}
		if n.made == 0 {
			n.made = time.Now().UnixMilli()
		}
		b, err := e.region.With(n.append(nil)).Ask(ctx, "x", fmt.Appendf(nil, "%q", body))
		require.NoError(t, err)
		return outcomeOf(b, nil)
	}
}

// TestCopies: a copy of what was had is known, also by the next owner, and when the record was deleted; one behind a
// gap waits, and one behind a void as long as its sender has that in its outbox; what is too old is not taken (SHD-12).
func TestCopies(t *testing.T) {
	m, old := store.Memory(), time.Now().Add(-41*time.Minute).UnixMilli()
	for _, round := range []string{"", "the next owner"} {
		sends := receives(t, m)
		for i, c := range []struct {
			n    note
			body string
			want outcome
		}{
			{note{from: "a\x00anna", number: 5}, "5", outcomeHandled},
			{note{from: "a\x00anna", number: 5}, "5", outcomeHandled},
			{note{from: "a\x00anna", number: 3}, "3", outcomeHandled}, // given up long ago
			{note{from: "a\x00anna", number: 90, before: 70}, "90", outcomeGap},
			{note{from: "a\x00anna", number: 7, before: 5}, "7", outcomeHandled},
			{note{from: "a\x00ben", number: 1}, "b", outcomeHandled},
			{note{from: "a\x00anna", number: 8, before: 7}, "no", outcomeVoid},
			{note{from: "a\x00anna", number: 8}, "no", outcomeVoid},
			{note{from: "a\x00anna", number: 9, before: 8}, "9", outcomeGap},
			{note{from: "a\x00anna", number: 10, kind: kindVoid, before: 8}, "", outcomeGap},
			{note{from: "a\x00old", number: 1, made: old}, "old", outcomeOld},
			{note{from: "a\x00old", number: 1, made: old, kind: kindVoid}, "", outcomeOld},
			{note{from: "a\x00ben", number: 1, made: old}, "b", outcomeHandled},
		} {
			o, text := sends(c.n, c.body)
			require.Equal(t, c.want, o, "%d %s", i, round)
			if o == outcomeVoid {
				require.Equal(t, refused+"never", text)
			}
		}
		_, had := sends(note{}, "")
		require.Equal(t, "57b", had)
	}
	sends := receives(t, m)
	sends(note{}, "gone")
	for n, want := range map[uint64]outcome{5: outcomeHandled, 8: outcomeVoid} {
		o, _ := sends(note{from: "a\x00anna", number: n}, "again")
		require.Equal(t, want, o)
	}
	o, text := sends(note{from: "a\x00anna", number: 9, kind: kindVoid}, "")
	require.Equal(t, outcomeVoid, o)
	require.Empty(t, text)
	o, _ = sends(note{from: "a\x00anna", number: 9}, "9")
	require.Equal(t, outcomeVoid, o)
	_, had := sends(note{}, "")
	require.Empty(t, had)
	o, _ = sends(note{from: "a\x00anna", number: 10}, "10")
	require.Equal(t, outcomeHandled, o)
	_, had = sends(note{}, "")
	require.Equal(t, "10", had)
}

// TestErrorOfAContextThatEnded: an error that a handler returns since the ask's time was over says nothing of the
// message: it is no refusal, and the message is handled when it comes again. One that sends what cannot be sent is
// refused, as it would be each time (SHD-12).
func TestErrorOfAContextThatEnded(t *testing.T) {
	node, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	calls := 0
	const name = Name[string]("slow")
	e, err := Register(node, Type[int, string, int]{Name: name, Store: store.Memory(), Shards: 1,
		Handle: func(tx *Tx[int], s *string) (int, error) {
			if calls++; calls == 1 {
				<-tx.Context().Done()
				return 0, fmt.Errorf("the other service: %w", tx.Context().Err())
			}
			if *s == "bad" {
				name.Send(tx, "", s)
			}
			*tx.State++
			return *tx.State, nil
		}})
	require.NoError(t, err)
	sends := func(n uint64, body string, d time.Duration) outcome {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		h := note{kind: kindParcel, from: "a\x00anna", number: n, made: time.Now().UnixMilli()}
		b, err := e.region.With(h.append(nil)).Ask(ctx, "x", fmt.Appendf(nil, "%q", body))
		o, _ := outcomeOf(b, err)
		return o
	}
	require.Equal(t, outcomeRetry, sends(1, "a", 50*time.Millisecond))
	require.Equal(t, outcomeHandled, sends(1, "a", time.Minute))
	require.Equal(t, outcomeVoid, sends(2, "bad", time.Minute))
}

// TestReminderOfARecordThatGrew: where a reminder fails, and the record is too large to be written since Upgrade made
// it so, the shard goes on committing for others (SHD-11).
func TestReminderOfARecordThatGrew(t *testing.T) {
	m := store.Memory()
	at, f := store.Shard{Type: "grown"}, route.MakeFence(1, 1, 1)
	_, err := m.Claim(t.Context(), at, f)
	require.NoError(t, err)
	l := reminders{{at: 1, name: "r"}}
	require.NoError(t, m.Commit(t.Context(), at, f, store.Write{Record: store.Record{ID: "x", Version: 1,
		Nonce: [16]byte{1}, State: []byte(`""`), Reminders: l.encode(), Due: l.due()}}))
	node, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	e, err := Register(node, Type[string, string, string]{Name: "grown", Store: m, Shards: 1, Schema: 1,
		Handle: func(tx *Tx[string], s *string) (string, error) {
			*tx.State = *s
			return *s, nil
		},
		Reminded: func(*Tx[string], string, []byte) error { return errors.New("never") },
		Upgrade: func(uint32, []byte) ([]byte, error) {
			return fmt.Appendf(nil, "%q", strings.Repeat("x", store.MaxBytes)), nil
		}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return e.Stats().RemindersFailed > 0 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	body := "y"
	r, err := e.Ask(ctx, "y", &body)
	require.NoError(t, err)
	require.Equal(t, "y", r)
}
