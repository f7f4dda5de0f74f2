// The singleton of a storm, and its lease: messages to it, a store that is slow, silent or forgetful (SHD-12).

package storm

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// drawLease makes the singleton need a lease, with a store that is slow, silent or forgetful now and then.
func (k *keeps) drawLease() {
	s, rng := k.s, k.rng
	if rng.IntN(2) > 0 {
		return
	}
	hold := between(rng, 2*time.Second, 6*time.Second)
	use := &world.LeaseUse{Config: leases.Config{Hold: hold, Renew: hold / 5, Timeout: hold / 4,
		Backoff: between(rng, 20*time.Millisecond, hold/5)}}
	use.Keep = hold + leaseSpare
	use.Fate = func() world.LeaseFate {
		f := world.LeaseFate{There: between(rng, 0, 20*time.Millisecond), Back: between(rng, 0, 20*time.Millisecond)}
		if s.ending {
			return f
		}
		switch rng.IntN(12) {
		case 0:
			f.There = between(rng, 0, 3*time.Second)
		case 1:
			f.Back = between(rng, 0, 20*time.Second) // it hangs
		case 2:
			f.Lost = true
		case 3:
			f.Blind = true
		case 4:
			f.There, f.Lost = between(rng, 0, 10*time.Second), true
		}
		return f
	}
	k.lone.Lease = use
}

// leaseSpare is how much longer than the holders the store takes a lease for held: a call that was made goes on so long
// at most.
const leaseSpare = 2 * time.Second

// holds is asked whenever the singleton is called: nobody else may have its lease.
func (k *keeps) holds(c *entity.Context, p *world.Process) {
	if k == nil || k.lone.Lease == nil || c.ID != loneID {
		return
	}
	k.called++
	if id := route.TypeOf(loneID); !k.s.w.Leases.Holds(k.s.w.Now, id, p, c.Fence) {
		k.s.check.Violate(p, "lease", "the singleton is called under %s, and its lease is another's or nobody's",
			world.FenceName(c.Fence))
	}
}

// send sends to the singleton now and then.
func (k *keeps) send(p *world.Process) {
	if k == nil || k.rng.IntN(3) > 0 {
		return
	}
	if r := p.Region(route.TypeOf(loneID)); r != nil {
		for range 1 + k.rng.IntN(3) {
			_ = k.s.send(r, loneID, 2, 60)
		}
	}
}
