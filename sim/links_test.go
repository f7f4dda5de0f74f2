// Tests of the data plane's links under faults: order and fates over one connection and over several, while receivers
// stall, connections break with full buffers, credit is lost, and a sender closes in the middle.

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/flow"
	"github.com/kith-io/kith/route"
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
		book := &l.w.check.book
		payload, nth := book.write(l.from, l.r.id, fmt.Sprint("e", e), 200)
		if _, err := l.r.send(fmt.Sprint("e", e), payload, 0); err != nil {
			var full *flow.LinkFullError
			require.ErrorAs(t, err, &full)
			require.Equal(t, 8<<10, full.Limit)
			book.entries[nth].fate = fateRejected
			book.fates[fateRejected]++
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

func (l *linkLoad) fates(f fate) int { return l.w.check.book.fates[f] }

// Whatever happens to connections and their ends, each entity sees a sender's messages in order and no message twice,
// every message has a fate that somebody was told, and when all is well again everything arrives (SHD-9). The checkers
// of the ledger judge it.
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

			l.to.pause(2 * time.Second) // a stalled receiver: the links fill up, and all of it comes when it goes on
			before := l.fates(fateDelivered)
			require.Positive(t, l.run(t, time.Second), "full links refuse")
			require.Equal(t, before, l.fates(fateDelivered))
			w.advance(5 * time.Second)
			require.True(t, w.settled(), "after a stall")
			require.Zero(t, l.fates(fateInFlight))

			for range 3 { // connections lost with full buffers: what waited goes first on the next one
				l.to.pause(1500 * time.Millisecond)
				require.Positive(t, l.run(t, time.Second))
				for _, c := range l.from.links.list {
					require.NotZero(t, c.link.flow.Pending())
					c.broke("cut with a full buffer")
				}
				w.advance(2 * time.Second)
			}
			require.Positive(t, l.fates(fateInFlight), "what was on the way is lost, and written off")

			for range 20 { // credit lost with its control connection: it is told again
				l.run(t, 200*time.Millisecond)
				for _, c := range l.to.conns.list {
					c.broke("credit is lost with it")
				}
			}
			w.advance(5 * time.Second)
			require.True(t, w.settled(), "no link waits for credit that was lost")
			require.Zero(t, l.run(t, time.Second), "nothing is full any more")

			l.to.pause(2 * time.Second) // and a sender that ends in the middle of a flush: what it holds is failed
			require.Positive(t, l.run(t, time.Second))
			l.from.die(true)
			require.Positive(t, l.fates(fateFailed))
			w.advance(5 * time.Second)
			w.audit()
			require.Empty(t, w.check.violations)
		})
	}
}
