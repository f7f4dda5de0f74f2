// Tests of the data plane's links under faults: order and fates over one connection and over several, while receivers
// stall, connections break with full buffers, credit is lost, routes are lost, and a sender closes in the middle.

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// linkLoad is a sender and a receiver, with a ledger of what the one sends to entities of the other.
type linkLoad struct {
	w        *world
	from, to *proc
	r        *region
}

func startLinkLoad(t *testing.T, connections int) *linkLoad {
	var w *world
	typ := &entityType{Type: entity.Type{Name: "log", Role: "host", Shards: 16, Mode: entity.Inline}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(_ *entity.Context, b []byte) error {
			w.delivered(w.acting, route.TypeOf("log"), id, b)
			return nil
		})
	}
	w = formed(t, 2, Config{Resolver: resolverOff, Roles: [][]string{{"host"}},
		Network: Network{Jitter: 5 * time.Millisecond},
		Data:    DataConfig{Connections: connections, Window: 4 << 10, LinkBuffer: 8 << 10}}, typ)
	l := &linkLoad{w: w, from: w.hosts[1].proc, to: w.hosts[0].proc}
	l.r = l.from.region(route.TypeOf("log"))
	l.send(t) // the homes become known
	w.advance(5 * time.Second)
	return l
}

// send writes one message to each entity. A full link refuses, and says so.
func (l *linkLoad) send(t *testing.T) (refused int) {
	for e := range 32 {
		book := &l.w.book
		payload, nth := book.write(l.from, l.r.id, fmt.Sprint("e", e), 200)
		if _, err := l.r.send(fmt.Sprint("e", e), payload, 0); err != nil {
			var full *flow.LinkFullError
			require.ErrorAs(t, err, &full)
			require.Equal(t, 8<<10, full.Limit)
			book.reject(nth)
			refused++
		}
	}
	return refused
}

// run sends for so long, every 100 ms, which is well within what the links carry.
func (l *linkLoad) run(t *testing.T, d time.Duration) (refused int) {
	for end := l.w.now + d; l.w.now < end; l.w.advance(100 * time.Millisecond) {
		refused += l.send(t)
	}
	return refused
}

func (l *linkLoad) fates(f fate) int { return l.w.book.fates[f] }

// slowPath makes the homes of all shards unknown, as a refusal of their owner does, while the owner stands still: what
// is sent parks, is drained over a link that has not room for all of it, and what is sent meanwhile parks behind it.
func (l *linkLoad) slowPath(t *testing.T) {
	l.to.pause(1500 * time.Millisecond)
	for i := range l.r.slots {
		f := l.r.slots[i].Fence()
		l.from.do(shard.RefusedCommand{Type: l.r.id, Shard: route.ShardID(i), Term: f.Term(), Epoch: f.Epoch()})
		require.False(t, l.r.slots[i].State().Open())
	}
	require.Zero(t, l.run(t, time.Second), "what parks is not refused")
	met := false
	for end := l.w.now + 5*time.Second; l.w.now < end; l.w.advance(time.Millisecond) {
		if l.from.agenda.Stalls() > 0 && !met {
			met = true
			l.send(t) // behind what is being drained
		}
	}
	require.True(t, met, "a drain met a full link")
	require.True(t, l.w.settled())
}

// Whatever happens to connections and their ends, each entity sees a sender's messages in order and no message twice,
// every message has a fate that somebody was told, and when all is well again everything arrives (SHD-9). The checkers
// of the ledger judge it. "Order per sender across the slow path, resume after a stall, close during a flush,
// connection loss with a full buffer, credit lost with a control connection each have tests, in the simulator and on
// sockets."
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
				require.Zero(t, l.fates(fateInFlight))
				require.Empty(t, broken(w))
			})
			t.Run("resume after a stall", func(t *testing.T) {
				l.to.pause(2 * time.Second)
				before := l.fates(fateDelivered)
				require.Positive(t, l.run(t, time.Second), "full links refuse")
				require.Equal(t, before, l.fates(fateDelivered))
				w.advance(5 * time.Second)
				require.True(t, w.settled())
				require.Zero(t, l.fates(fateInFlight), "all of it has come")
				require.Empty(t, broken(w))
			})
			t.Run("connection loss with a full buffer", func(t *testing.T) {
				for range 3 {
					l.to.pause(1500 * time.Millisecond)
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
					w.advance(2 * time.Second)
				}
				require.Positive(t, l.fates(fateInFlight), "what was on the way is lost, and written off")
				require.Empty(t, broken(w))
			})
			t.Run("credit lost with a control connection", func(t *testing.T) {
				w.cfg.Data.OldCredit = true // since wire version 2 it does not travel there
				defer func() { w.cfg.Data.OldCredit = false }()
				// A whole window is consumed while no control connection lives for long: then nothing but a repetition tells.
				for range 5 {
					l.to.pause(500 * time.Millisecond)
					require.Positive(t, l.run(t, 400*time.Millisecond))
					for range 300 {
						w.advance(time.Millisecond)
						for _, c := range l.to.conns.list {
							c.broke("credit is lost with it")
						}
					}
				}
				w.advance(5 * time.Second)
				require.True(t, w.settled(), "no link waits for credit that was lost")
				require.Zero(t, l.run(t, time.Second), "nothing is full any more")
			})
			t.Run("close during a flush", func(t *testing.T) {
				l.to.pause(2 * time.Second)
				require.Positive(t, l.run(t, time.Second))
				l.from.die(true)
				require.Positive(t, l.fates(fateFailed), "what it holds is failed")
				w.advance(5 * time.Second)
			})
			w.audit()
			require.Empty(t, broken(w))
		})
	}
}
