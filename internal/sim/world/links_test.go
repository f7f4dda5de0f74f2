// Tests of the data plane's links under faults: order and fates over one connection and over several, while receivers
// stall, connections break with full buffers, credit is lost, routes are lost, and a sender closes in the middle.

package world

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// linkLoad is a sender and a receiver, with a ledger of what the one sends to entities of the other.
type linkLoad struct {
	w        *World
	from, to *Process
	r        *Region
}

func startLinkLoad(t *testing.T, connections int) *linkLoad {
	var w *World
	typ := &EntityType{Type: entity.Type{Name: "log", Role: "host", Shards: 16, Mode: entity.Inline}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(_ *entity.Context, b []byte) error {
			w.Delivered(w.Acting, route.TypeOf("log"), id, b)
			return nil
		})
	}
	w = formed(t, 2, setup.Config{Resolver: ResolverOff, Roles: [][]string{{"host"}},
		Network: setup.Network{Jitter: 5 * time.Millisecond},
		Data:    setup.DataConfig{Connections: connections, Window: 4 << 10, LinkBuffer: 8 << 10}}, typ)
	l := &linkLoad{w: w, from: w.Hosts[1].Process, to: w.Hosts[0].Process}
	l.r = l.from.Region(route.TypeOf("log"))
	l.send(t) // the homes become known
	w.Advance(5 * time.Second)
	return l
}

// send writes one message to each entity. A full link refuses, and says so.
func (l *linkLoad) send(t *testing.T) (refused int) {
	for e := range 32 {
		book := &l.w.Book
		payload, nth := book.Write(l.from, l.r.ID, fmt.Sprint("e", e), 200)
		if _, err := l.r.Send(fmt.Sprint("e", e), payload, 0); err != nil {
			var full *flow.LinkFullError
			require.ErrorAs(t, err, &full)
			require.Equal(t, 8<<10, full.Limit)
			book.Reject(nth)
			refused++
		}
	}
	return refused
}

// run sends for so long, every 100 ms, which is well within what the links carry.
func (l *linkLoad) run(t *testing.T, d time.Duration) (refused int) {
	for end := l.w.Now + d; l.w.Now < end; l.w.Advance(100 * time.Millisecond) {
		refused += l.send(t)
	}
	return refused
}

func (l *linkLoad) fates(f Fate) int { return l.w.Book.Fates[f] }

// slowPath makes the homes of all shards unknown, as a refusal of their owner does, while the owner stands still: what
// is sent parks, is drained over a link that has not room for all of it, and what is sent meanwhile parks behind it.
func (l *linkLoad) slowPath(t *testing.T) {
	l.to.Pause(1500 * time.Millisecond)
	for i := range l.r.slots.All {
		f := l.r.Slot(i).Fence()
		l.from.Do(shard.RefusedCommand{Type: l.r.ID, Shard: route.ShardID(i), Term: f.Term(), Epoch: f.Epoch()})
		require.False(t, l.r.Slot(i).State().Open())
	}
	require.Zero(t, l.run(t, time.Second), "what parks is not refused")
	met := false
	for end := l.w.Now + 5*time.Second; l.w.Now < end; l.w.Advance(time.Millisecond) {
		if l.from.agenda.Stalls() > 0 && !met {
			met = true
			l.send(t) // behind what is being drained
		}
	}
	require.True(t, met, "a drain met a full link")
	require.True(t, l.w.Quiet())
}

// Whatever happens to connections and their ends, each entity sees a sender's messages in order and no message twice,
// every message has a fate that was reported, and when all is well again everything arrives (SHD-9). The checkers of
// the ledger judge it. "Order per sender across the slow path, resume after a stall, close during a flush, connection
// loss with a full buffer, credit lost with a control connection each have tests, in the simulator and on sockets."
func TestLinksUnderFaults(t *testing.T) {
	for _, connections := range []int{1, 3} {
		t.Run(fmt.Sprint(connections, " connections"), func(t *testing.T) {
			l := startLinkLoad(t, connections)
			w := l.w
			require.Zero(t, l.run(t, time.Second))
			used := map[int]bool{}
			for _, c := range l.from.links.list {
				if c.link.flow.Stats().Sent > 0 {
					used[c.number] = true
				}
			}
			require.Len(t, used, connections, "the shard chooses the connection")

			t.Run("order across the slow path", func(t *testing.T) {
				l.slowPath(t)
				require.Zero(t, l.fates(FateInFlight))
				require.Empty(t, broken(w))
			})
			t.Run("resume after a stall", func(t *testing.T) {
				l.to.Pause(2 * time.Second)
				before := l.fates(FateDelivered)
				require.Positive(t, l.run(t, time.Second), "full links refuse")
				require.Equal(t, before, l.fates(FateDelivered))
				w.Advance(5 * time.Second)
				require.True(t, w.Quiet())
				require.Zero(t, l.fates(FateInFlight), "all of it has come")
				require.Empty(t, broken(w))
			})
			t.Run("connection loss with a full buffer", func(t *testing.T) {
				for range 3 {
					l.to.Pause(1500 * time.Millisecond)
					require.Positive(t, l.run(t, time.Second))
					for _, c := range l.from.links.list {
						require.NotZero(t, c.link.flow.Pending())
						c.broke("cut with a full buffer")
					}
					waited := 0
					for _, c := range l.from.links.list {
						waited += c.link.flow.Pending()
					}
					require.NotZero(t, waited, "what waited is kept for the next connection")
					w.Advance(2 * time.Second)
				}
				require.Positive(t, l.fates(FateInFlight), "what was on the way is lost, and written off")
				require.Empty(t, broken(w))
			})
			t.Run("credit lost with a control connection", func(t *testing.T) {
				w.Config.Data.OldCredit = true // since wire version 2 it does not travel there
				defer func() { w.Config.Data.OldCredit = false }()
				// A whole window is consumed while no control connection lives for long: then nothing but a repetition tells.
				for range 5 {
					l.to.Pause(500 * time.Millisecond)
					require.Positive(t, l.run(t, 400*time.Millisecond))
					for range 300 {
						w.Advance(time.Millisecond)
						for _, c := range l.to.conns.list {
							c.broke("credit is lost with it")
						}
					}
				}
				w.Advance(5 * time.Second)
				require.True(t, w.Quiet(), "no link waits for credit that was lost")
				require.Zero(t, l.run(t, time.Second), "nothing is full any more")
			})
			t.Run("close during a flush", func(t *testing.T) {
				l.to.Pause(2 * time.Second)
				require.Positive(t, l.run(t, time.Second))
				l.from.Die(true)
				require.Positive(t, l.fates(FateFailed), "what it holds is failed")
				w.Advance(5 * time.Second)
			})
			w.Audit()
			require.Empty(t, broken(w))
		})
	}
}

// What a closed gate keeps counts as taken when its connection breaks: its sender writes nothing off. So a process that
// ends then tells what becomes of it. What came on a connection that lives it has not taken, says so, and its sender
// knows it as lost: each is reported once (SHD-4).
func TestKeptWhenItsConnectionBreaks(t *testing.T) {
	l := startLinkLoad(t, 1)
	w := l.w
	l.to.Stick(time.Minute)
	w.Advance(20 * time.Second)
	require.True(t, l.to.Held())
	require.Zero(t, l.send(t))
	w.Advance(100 * time.Millisecond)
	kept := 0
	for i := range l.to.gate.waiting {
		if l.to.gate.waiting[i].frame != nil {
			kept++
		}
	}
	require.Positive(t, kept)
	for _, c := range l.from.links.list {
		c.broke("while the gate is closed")
	}
	w.Advance(time.Second)
	require.Zero(t, l.send(t))
	w.Advance(100 * time.Millisecond)
	l.to.Die(true)
	w.Advance(time.Second) // what it says at its end has come
	require.NoError(t, l.from.Command(membership.DownCommand{ID: l.to.ID}))
	w.Advance(time.Minute)
	told := map[route.Reason]uint64{}
	for r, n := range w.Book.Reports() {
		told[r.Why] += n
	}
	require.EqualValues(t, kept, told[route.Abandoned])
	require.Positive(t, told[route.LostInFlight], "of those that came on a connection that lives")
	require.Zero(t, w.Book.unknown[l.from])
	require.EqualValues(t, 2*32, told[route.Abandoned]+told[route.PeerLost]+told[route.LostInFlight])
}

// TestUnsentEnvelopeOfALargeMessage: a link that gives up the envelope of a large message ends that one, and none to
// another process for which the same reference stands there (SHD-10).
func TestUnsentEnvelopeOfALargeMessage(t *testing.T) {
	typ := &EntityType{Type: entity.Type{Name: "big", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { return nil })
		}}}
	w := formed(t, 3, setup.Config{}, typ)
	p := w.Hosts[0].Process
	ref := wire.BulkRef{Generation: 1, Number: 1}
	begin := func(to *Process) *large {
		l := &large{r: p.Region(route.TypeOf("big")), ref: ref}
		l.life.Began(to.ID, 1, 1)
		require.True(t, l.life.Arrived())
		l.life.Referred()
		p.bulk.out = append(p.bulk.out, l)
		return l
	}
	gone := w.Hosts[2].Process
	there, unsent := begin(w.Hosts[1].Process), begin(gone)
	frame := make([]byte, wire.SizeEnvelope(1, wire.BulkRefSize))
	wire.PutEnvelope(frame, &wire.Envelope{Type: uint32(there.r.ID), Flags: wire.FlagBulk,
		Payload: wire.AppendBulkRef(nil, ref)}, "a")
	for range 2 { // the second stands for one that is over
		p.failed(gone.ID, frame, route.PeerLost, "test")
	}
	require.False(t, unsent.life.End())
	require.Equal(t, []*large{there}, p.bulk.out)
}
