// Tests of the pool that simulated nodes share: nothing that a node does depends on it, and it is bounded.

package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/members"
)

// life runs one cluster of nine through joining, a crash, a downing and a leave, and tells what each node published.
func life(t *testing.T, seed uint64, pool *members.Intern) (log []string, w *world) {
	w = newWorld(t, seed)
	w.cfg.Intern = pool
	w.cfg.CompressAbove = 64
	all := w.cluster(9)
	w.chaos = true
	w.crash(all[8])
	w.run(8 * time.Second)
	w.do(all[1], DownCommand{ID: all[8].id})
	w.do(all[2], LeaveCommand{})
	w.run(5 * time.Second)
	w.chaos = false
	w.until(30*time.Second, "settled", w.settled)
	for _, a := range all {
		log = append(log, fmt.Sprintf("%v %v %v %+v", a.view.Seq, a.view.Hash, a.events, a.m.Stats()))
	}
	return append(log, fmt.Sprint(w.now, w.seq, w.counts, w.sizes)), w
}

// With and without a pool every node publishes the same, at the same time, in as many messages of the same sizes; with
// it all nodes hold one and the same version in the end.
func TestInterningChangesNothing(t *testing.T) {
	for seed := range uint64(6) {
		plain, _ := life(t, seed, nil)
		pool := members.NewIntern()
		shared, w := life(t, seed, pool)
		require.Equal(t, plain, shared)
		for _, a := range w.alive() {
			require.Same(t, w.alive()[0].m.st.Version, a.m.st.Version)
		}
		found, made := pool.Hits()
		require.Greater(t, found, made, "most states are found")
	}
}
