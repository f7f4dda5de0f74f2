// Tests of shards that nobody owns: their sets follow the disks.

package records

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// TestDisksGoOneByOne: disks are removed for good, one by one, 60 s apart, all of them that were there in the
// beginning. Nobody owns a shard meanwhile: one that was used is served afterwards with its value, also from a history
// that ends with a change of set, and one that was never used, but asked for what waits in it every 30 s, as its host
// does, can be claimed (DYN-1).
func TestDisksGoOneByOne(t *testing.T) {
	for _, back := range []bool{false, true} { // with an empty disk
		t.Run(fmt.Sprintf("back=%t", back), func(t *testing.T) {
			w := newWorld(t, plan{nodes: 7, members: 3, shards: 3, heals: true}, 1)
			for i := range uint32(2) {
				c := w.claim(Shard{"t", i})
				c.node = 6
				for _, want := range []string{"claim", "load", "commit"} {
					was := w.counts[want]
					if want == "commit" {
						w.commits(c, []Write{{New: true, Record: Record{ID: "a", Version: 1, State: []byte("v"), Nonce: [16]byte{1}}}})
					} else {
						w.acts(c)
					}
					w.run(w.now + time.Second)
					require.Equal(t, was+1, w.counts[want])
				}
			}
			w.issued[fmt.Sprint(Shard{"t", 0}, "a", 1, "v")], w.issued[fmt.Sprint(Shard{"t", 1}, "a", 1, "v")] = true, true
			w.clients = nil
			w.lose(w.nodes[6]) // the owners are gone
			for i := range 4 {
				w.asks(5, Shard{"t", 2})
				if back {
					w.lose(w.nodes[i])
				} else {
					w.crash(w.nodes[i])
					w.nodes[i].removed = true
					w.lost.Add(w.nodes[i].id)
					w.members()
				}
				w.run(w.now + 30*time.Second)
				w.asks(5, Shard{"t", 2})
				w.run(w.now + 30*time.Second)
				for _, n := range w.nodes {
					if n.m != nil {
						require.Empty(t, n.m.owners, "those that cared have ended")
						require.Empty(t, n.m.carer.under)
					}
				}
			}
			for i := range uint32(3) {
				c := w.claim(Shard{"t", i})
				c.node = 4
				for _, want := range []string{"claim", "load"} {
					was := w.counts[want]
					w.acts(c)
					w.run(w.now + time.Second)
					require.Equal(t, was+1, w.counts[want], "shard %d: %v", i, w.counts)
				}
				require.Equal(t, uint64(1-i/2), c.knows["a"])
			}
			require.Empty(t, w.faults)
		})
	}
}

// asks reads what waits in a shard, as its host does from time to time, under no fence.
func (w *world) asks(node int, sh Shard) {
	w.do(&client{node: node, shard: sh}, &op{kind: "due"}, func(x uint64) Command {
		return ReadCommand{x, sh, route.Fence{}, Query{Ask: AskUnsent, Most: 100}}
	})
}
