// The account is made right: each end of a message, with what was reported of it, and what is lacking.

package check

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TestAccount: accepted = handled + reported + lost for a named reason; whatever else there is counts in the
// difference, and so does what is said to be undelivered and is not (ACC-1).
func TestAccount(t *testing.T) {
	id := route.TypeOf("far")
	type sums = map[Cause]int
	left := func(p *world.Process) {
		p.Crash(true)
		p.Ended = &membership.Ended{Kind: membership.EndLeft}
	}
	kept := func(w *world.World, _, b *world.Process, m []byte) {
		world.FeignKept(w, m, b)
		left(b)
	}
	for _, tc := range []struct {
		name string
		do   func(w *world.World, a, b *world.Process, m []byte)
		want Accounts
	}{
		{"handled", func(w *world.World, _, b *world.Process, m []byte) { w.Delivered(b, id, "x", m) },
			Accounts{Handled: 1}},
		{"refused and told", func(_ *world.World, a, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.MailboxFull)
			world.FeignUndelivered(a, id, 0, route.MailboxFull, 1)
		}, Accounts{Reported: 1}},
		{"refused and not told", func(_ *world.World, _, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.MailboxFull)
		}, Accounts{Open: sums{Untold: 1}}},
		{"told for another reason", func(_ *world.World, a, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.MailboxFull)
			world.FeignUndelivered(a, id, 0, route.NotOwner, 1)
		}, Accounts{Open: sums{Untold: 1, TooOften: 1}}},
		{"told twice", func(_ *world.World, a, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.MailboxFull)
			world.FeignUndelivered(a, id, 0, route.MailboxFull, 2)
		}, Accounts{Reported: 1, Open: sums{TooOften: 1}}},
		{"told of a shard without a message", func(w *world.World, a, b *world.Process, m []byte) {
			w.Delivered(b, id, "x", m)
			world.FeignUndelivered(a, id, 1, route.MailboxFull, 1)
		}, Accounts{Handled: 1, Open: sums{TooOften: 1}}},
		{"who refused it was killed", func(_ *world.World, _, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.MailboxFull)
			b.Crash(true)
		}, Accounts{Lost: sums{RefuserEnded: 1}}},
		{"its sender was killed", func(_ *world.World, a, _ *world.Process, _ []byte) { a.Crash(true) },
			Accounts{Lost: sums{SenderEnded: 1}}},
		{"in a mailbox of one that was killed", func(w *world.World, _, b *world.Process, m []byte) {
			world.FeignPlace(w, m, b)
			b.Crash(true)
		}, Accounts{Lost: sums{ReceiverKilled: 1}}},
		{"there, and told", func(w *world.World, a, b *world.Process, m []byte) {
			world.FeignPlace(w, m, b)
			b.Crash(true)
			world.FeignUndelivered(a, id, 0, route.LostInFlight, 1)
		}, Accounts{Reported: 1}},
		{"on a connection that broke", func(w *world.World, _, _ *world.Process, m []byte) {
			world.FeignLost(w, m, false)
		}, Accounts{Open: sums{InFlight: 1}}},
		{"there, and told", func(w *world.World, a, _ *world.Process, m []byte) {
			world.FeignLost(w, m, false)
			world.FeignUndelivered(a, id, 0, route.LostInFlight, 1)
		}, Accounts{Reported: 1}},
		{"told as perhaps lost, and handled", func(w *world.World, a, b *world.Process, m []byte) {
			world.FeignLost(w, m, true)
			world.FeignUndelivered(a, id, 0, route.PeerLost, 1)
			w.Delivered(b, id, "x", m)
		}, Accounts{Handled: 1, Twice: 1}},
		{"dropped where it lay, and told there", func(_ *world.World, _, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.Crashed)
			world.FeignUndelivered(b, id, 0, route.Crashed, 1)
		}, Accounts{Reported: 1}},
		{"dropped where it lay, and told elsewhere", func(w *world.World, _, b *world.Process, m []byte) {
			world.FeignRefused(b, m, route.Crashed)
			world.FeignUndelivered(w.Hosts[2].Process, id, 0, route.Crashed, 1)
		}, Accounts{Open: sums{Untold: 1, TooOften: 1}}},
		{"handed over, and perhaps lost there", func(w *world.World, _, _ *world.Process, m []byte) {
			world.FeignPerhapsHandedOver(w, m)
		}, Accounts{Reported: 1}},
		{"an ask, handed over and perhaps lost there", func(w *world.World, _, _ *world.Process, m []byte) {
			world.FeignAsk(w, m)
			world.FeignPerhapsHandedOver(w, m)
		}, Accounts{Open: sums{AskOpen: 1}}},
		{"an ask whose time was over before that", func(w *world.World, _, _ *world.Process, m []byte) {
			world.FeignAsk(w, m)
			w.Book.Answered(world.NumberOf(m))
			world.FeignPerhapsHandedOver(w, m)
		}, Accounts{Reported: 1}},
		{"an ask whose time was over after that", func(w *world.World, _, _ *world.Process, m []byte) {
			world.FeignAsk(w, m)
			world.FeignPerhapsHandedOver(w, m)
			w.Book.Answered(world.NumberOf(m))
		}, Accounts{Reported: 1}},
		{"kept by the gate of one that left", kept, Accounts{Open: sums{LeftBehind: 1}}},
		{"old: kept by the gate of one that left", kept, Accounts{Lost: sums{Earlier: 1}}},
		{"old: in a mailbox of one that left", func(w *world.World, _, b *world.Process, m []byte) {
			world.FeignPlace(w, m, b)
			left(b)
		}, Accounts{Open: sums{LeftBehind: 1}}},
		{"nowhere", func(*world.World, *world.Process, *world.Process, []byte) {}, Accounts{Open: sums{Nowhere: 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := setup.Config{Data: setup.DataConfig{OldCredit: strings.HasPrefix(tc.name, "old: ")}}
			w := formed(t, 3, cfg, &world.EntityType{Type: entity.Type{Name: "far", Shards: 2, New: silent}})
			a, b := w.Hosts[0].Process, w.Hosts[1].Process
			m, _ := w.Book.Write(a, id, "x", 0)
			tc.do(w, a, b, m)
			got := Account(w)
			require.Equal(t, 1, got.Accepted)
			require.Equal(t, tc.want.Handled, got.Handled)
			require.Equal(t, tc.want.Reported, got.Reported)
			require.Equal(t, tc.want.Twice, got.Twice)
			require.Equal(t, tc.want.Lost, sumsOf(got.Lost))
			require.Equal(t, tc.want.Open, sumsOf(got.Open))
		})
	}
}

// sumsOf returns nil for a map without entries.
func sumsOf(m map[Cause]int) map[Cause]int {
	if len(m) == 0 {
		return nil
	}
	return m
}

// TestLaw: a difference is a violation that names a message.
func TestLaw(t *testing.T) {
	w := formed(t, 3, setup.Config{}, &world.EntityType{Type: entity.Type{Name: "far", Shards: 2, New: silent}})
	id := route.TypeOf("far")
	m, _ := w.Book.Write(w.Hosts[0].Process, id, "x", 0)
	w.Delivered(w.Hosts[1].Process, id, "x", m)
	Account(w).Law(checks(w))
	require.Empty(t, checks(w).Violations)
	world.FeignUndelivered(w.Hosts[0].Process, id, 1, route.MailboxFull, 2)
	_, _ = w.Book.Write(w.Hosts[0].Process, id, "x", 0)
	Account(w).Law(checks(w))
	require.Len(t, checks(w).Violations, 2)
	require.Contains(t, checks(w).Violations[0].Text, "1 of 2 messages are nowhere: one of n1 to far/0, last at n1")
	require.Contains(t, checks(w).Violations[1].Text, "2 to far/1 are told as mailbox-full to n1")
}

// TestAccountsAdd: sums of runs add up, and the difference is what no name explains.
func TestAccountsAdd(t *testing.T) {
	var all Accounts
	one := Accounts{Accepted: 4, Handled: 1, Reported: 1, Lost: map[Cause]int{SenderEnded: 1},
		Open: map[Cause]int{Untold: 1}}
	all.Add(&one)
	all.Add(&one)
	require.Equal(t, Accounts{Accepted: 8, Handled: 2, Reported: 2, Lost: map[Cause]int{SenderEnded: 2},
		Open: map[Cause]int{Untold: 2}}, all)
	require.Equal(t, 2, all.Difference())
}

// TestCausesAreDocumented: the docs have a row for every reason for which a message may be lost, and for no other, and
// name what a difference may be (ACC-1).
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/account.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| reason | what happened |\n|---|---|\n")
	require.True(t, found)
	var rows []Cause
	for line := range strings.Lines(table) {
		cell, is := strings.CutPrefix(line, "| `")
		if !is {
			break
		}
		name, _, _ := strings.Cut(cell, "`")
		rows = append(rows, Cause(name))
	}
	require.ElementsMatch(t, named, rows)
	for _, c := range lawless {
		require.Contains(t, string(text), "`"+string(c)+"`")
	}
}
