// Life: the lock by which the next process at this node's address proves this one dead. Nothing here delays a start for
// long or has it fail: without a lock the shards of a lost owner wait for the takeover time (AVL-5, SHD-9).

package driver

import (
	"errors"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/life"
	"github.com/kith-io/kith/peer"
)

// lifeWait is how long a start waits for a disk.
const lifeWait = 2 * time.Second

// errSlowDisk is why a start went on without a lock.
var errSlowDisk = errors.New("the disk does not answer")

// beginLife takes the lock and returns the incarnation at this address that it proves dead; zero: none. Where the next
// process has another address there is no lock. One that comes too late is kept for ever: its file may name this node.
func beginLife(d *Driver) (dead uint64) {
	if d.cfg.Sharding.NoLockProof || d.cfg.Directory == "" && strings.HasSuffix(d.cfg.Listen, ":0") {
		return 0
	}
	addr := d.self.Addr.String()
	path := life.Path(d.cfg.Directory, addr, d.cfg.Name)
	type taken struct {
		lock *life.Lock
		dead uint64
		err  error
	}
	got := make(chan taken, 1)
	go func() {
		lock, dead, err := life.Take(path, addr, d.self.Inc)
		got <- taken{lock, dead, err}
	}()
	patience := time.NewTimer(lifeWait)
	defer patience.Stop()
	t := taken{err: errSlowDisk}
	select {
	case t = <-got:
	case <-patience.C:
	}
	d.life = t.lock
	if t.err != nil {
		d.log.Debug("nothing will prove this process dead", "file", path, "error", t.err)
	}
	if t.dead != 0 {
		d.log.Info("the process before this one is dead, for this one has its lock", "incarnation",
			peer.ID{Addr: d.self.Addr, Inc: t.dead}, "file", path)
	}
	return t.dead
}

// endLife gives the lock up when the last handler has returned, which over tells: at once, if that is now. A node that
// has left has no shards that others wait for, and removes the file.
func endLife(d *Driver, over <-chan struct{}, left bool) {
	if d.life == nil {
		return
	}
	select {
	case <-over:
		d.life.Release(left)
	default:
		go func() {
			<-over
			d.life.Release(left)
		}()
	}
}
