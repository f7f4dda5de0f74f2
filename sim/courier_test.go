// Control messages in the simulator: a full window, and checkers that must cry out (FD-4).

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/courier"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// TestFullWindow: with a window of two messages and parcels that do not arrive for a while, most of what the
// coordinator has to say finds no room. It is refused, counted, and said again when there is: every home is found, and
// nobody is given up for it.
func TestFullWindow(t *testing.T) {
	var types []*entityType
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		types = append(types, &entityType{Type: entity.Type{Name: name, Shards: 4, Mode: entity.Inline, New: silent}})
	}
	w := formed(t, 3, Config{Courier: node.CourierConfig{Messages: 2}}, types...)
	checks(w).calmMail = true
	w.net.swallows = func(_, _ int, kind wire.Kind) bool { return kind == wire.KindParcel }
	want := func() (missing int) {
		for _, h := range w.hosts {
			for _, r := range h.proc.regions {
				missing += r.homeless()
			}
		}
		return missing
	}
	for _, h := range w.hosts {
		for _, r := range h.proc.regions {
			for n := range r.typ.Shards {
				h.proc.do(shard.WantCommand{Type: r.id, Shards: []route.ShardID{route.ShardID(n)}})
			}
		}
	}
	w.advance(5 * time.Second)
	first := w.hosts[0].proc
	require.Positive(t, first.node.Courier().Full)
	require.LessOrEqual(t, first.node.Courier().Outstanding, 4, "two to each of two")
	w.net.swallows = nil
	require.True(t, w.until(20*time.Second, func() bool { return want() == 0 }), "%d homes are not known", want())
	require.True(t, w.until(5*time.Second, func() bool { return checks(w).undelivered() == "" }))
	require.Empty(t, checks(w).violations)
}

// TestCourierCheckerCriesOut: each of its rules, broken once.
func TestCourierCheckerCriesOut(t *testing.T) {
	w := formed(t, 2, Config{})
	a, b := w.hosts[0].proc, w.hosts[1].proc
	post := func(seq uint64, body string) {
		p := courier.Parcel{From: a.id.Inc, To: b.id.Inc, Seq: seq, Kind: wire.KindHomes, Body: []byte(body)}
		checks(w).posted(a, &peer.Mail{To: b.id, Kind: wire.KindParcel, Body: courier.AppendParcel(nil, &p)})
	}
	hear := func(body string) {
		checks(w).received(b, &node.Received{From: a.id, Kind: wire.KindHomes, Body: []byte(body)})
	}
	begin := func() {
		checks(w).violations, checks(w).streams = nil, map[pairKey]*letters{}
		post(1, "one")
		post(2, "two")
		post(1, "one")
		require.Contains(t, checks(w).undelivered(), "2 of 2 control messages of n1 to n2")
		hear("one")
		require.Empty(t, checks(w).violations)
	}
	for name, broken := range map[string]func(){
		"twice":             func() { hear("one") },
		"out of order":      func() { post(3, "three"); hear("three") },
		"never sent":        func() { hear("two"); hear("three") },
		"another message":   func() { post(2, "zwei") },
		"a number left out": func() { post(4, "four") },
		"no parcel":         func() { checks(w).posted(a, &peer.Mail{To: b.id, Kind: wire.KindParcel, Body: []byte{1}}) },
	} {
		begin()
		broken()
		require.Len(t, checks(w).violations, 1, name)
		require.Equal(t, "courier", checks(w).violations[0].Rule)
	}
	begin()
	hear("two")
	require.Empty(t, checks(w).undelivered())
	require.Empty(t, checks(w).violations)
}
