// The world's own rules of large messages and of sleepers cry out when they are broken.

package world

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// TestRulesCryOut breaks each rule in turn, in a world of its own (SHD-9, SEC-4).
func TestRulesCryOut(t *testing.T) {
	for _, c := range []struct {
		rule, want string
		breach     func(w *World, a, b *Process)
	}{
		{"bulk", "bytes of room are used", func(_ *World, a, _ *Process) { a.bulk.lent++; a.turns() }},
		{"bulk", "messages wait for room", func(_ *World, a, b *Process) {
			a.bulk.room.Take(b.ID, flow.BulkKey{Conn: 9, Number: 1}, a.bulk.room.Limit)
			a.bulk.room.Take(b.ID, flow.BulkKey{Conn: 9, Number: 2}, 1)
			a.bulk.bounds(a)
		}},
		{"bulk", "its share is", func(_ *World, a, b *Process) {
			a.bulk.room.Take(b.ID, flow.BulkKey{Conn: 9, Number: 1}, a.bulk.room.Limit)
			a.bulk.share(a, b.ID, 1)
		}},
		{"bulk", "under way for ever", func(w *World, a, b *Process) {
			c := a.bulkLink(b.ID).conn
			c.dial()
			w.Advance(time.Second)
			in := b.bulkReader(c)
			require.NoError(t, in.r.Begin(b.clock(), wire.BulkBegin{Number: 1, Size: 1}, flow.BulkEnd{}))
			for range 3 {
				in.ends(b)
			}
		}},
		{"bulk", "its payload is at", func(_ *World, a, b *Process) {
			s := flow.MakeSlot(nil)
			s.Resolve(false, b.ID, route.MakeFence(1, 1, 1))
			(&large{r: a.Regions[0]}).follows(&s)
		}},
		{"bulk", "failed as not-owner", func(_ *World, a, _ *Process) {
			(&large{r: a.Regions[0], tries: 1}).fails(route.NotOwner)
		}},
		{"bounds", "count as waiting in mailboxes", func(_ *World, a, _ *Process) {
			a.mailbox.Force(1)
			a.Idle()
		}},
		{"suspended-before", "knows nothing of 1h", func(_ *World, a, _ *Process) {
			a.unseen = time.Hour
			a.gate.oversleeps(a)
		}},
	} {
		typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: entity.Inline,
			New: func(string, route.Fence) entity.Handler { return handlerFunc(nil) }}}
		w := formed(t, 2, setup.Config{Resolver: ResolverOff}, typ)
		c.breach(w, w.Hosts[0].Process, w.Hosts[1].Process)
		require.NotEmpty(t, broken(w), c.want)
		said := strings.Join(broken(w), "\n")
		require.Contains(t, said, c.rule)
		require.Contains(t, said, c.want)
	}
}
