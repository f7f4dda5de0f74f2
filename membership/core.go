// Core: what all parts of a machine share: its identity, the state that it holds, its deadlines, and what it has to
// say.

package membership

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// phase is where a machine stands between its birth and its end.
type phase uint8

const (
	idle    phase = iota // nothing asked yet
	probing              // looking for a member among the seeds
	pending              // one was asked to admit us
	member               // admitted
	ended                // over
)

// core is the middle of a machine, which all parts share: they change the state through install, speak through post and
// tell, and are woken by in. What only one part needs is that part's own.
type core struct {
	self peer.ID
	cfg  Config
	rng  *rand.Rand
	now  time.Duration

	phase   phase
	st      *members.State // nil until admitted
	source  peer.ID        // sender of the frame that this verb handles; this node itself in other verbs
	contact time.Duration  // when a member was last heard
	store   *members.Store
	history members.History
	ages    ages
	dead    deadLinks
	stats   Stats

	dirty bool // state, seen set or confirmed exits changed: duties are due
	stale bool // state, seen set or phase changed since the last view was made
	push  bool // the state is worth an eager push

	older []peer.ID // nodes that speak a wire version without partitions, the last maxOlder of them

	timers [timerCount]timer
	arena  peer.Arena
	mail   []peer.Mail
	died   []peer.ID // proven dead, since the last Drain
	told   []Event   // without a view of their own, in order, since the last Drain
	over   *Ended
}

// post sends one message, with the body that appendBody writes.
func (c *core) post(to peer.ID, kind wire.Kind, appendBody func(b []byte) []byte) {
	body := c.arena.End(appendBody(c.arena.Begin()))
	c.mail = append(c.mail, peer.Mail{To: to, Kind: kind, Body: body})
}

func (c *core) toward(to peer.ID) envelope { return envelope{to.Inc, c.st.Cluster} }

// drawNonce draws a random number that is not zero.
func (c *core) drawNonce() uint64 { return c.rng.Uint64() | 1 }

// tell gives out an event that no view leads to.
func (c *core) tell(e Event) { c.told = append(c.told, e) }

func (c *core) in(i int, d time.Duration) { c.timers[i] = timer{c.now + d, true} }

func (c *core) stop(i int) { c.timers[i].on = false }

// held returns the version of that digest, if this node still has it.
func (c *core) held(d gossip.Digest) *members.Version {
	if d == c.st.Digest {
		return c.st.Version
	}
	return c.history.Find(d)
}

// addressed reports whether a message was meant for this incarnation and this cluster. Others are ignored.
func (c *core) addressed(e envelope) bool {
	if c.phase != member {
		return false
	}
	if e.to != c.self.Inc || e.cluster != c.st.Cluster {
		c.stats.Misaddressed++
		return false
	}
	return true
}

// install makes s the state of this node. push says that it is worth an eager push: a change of this node, or a
// version met for the first time; never the result of a merge.
func (c *core) install(s *members.State, push bool) {
	c.noteDeaths(s)
	if c.st != nil && c.st != s {
		c.dead.follow(c.st, s, c.cfg.MonitoredBy, c.now)
		s.Floor = c.st.Floor
		c.store.Recycle(c.st)
		c.history.Push(c.st.Version, c.push || c.timers[timerPush].on)
	}
	s.Version = c.store.Share(s.Version)
	s.Floor = max(s.Floor, s.Clock.Of(c.self))
	c.st, c.dirty, c.stale = s, true, true
	c.ages.followTombs(s.Tombs, c.now)
	if c.cfg.ClockEntries > 0 {
		c.ages.followClock(s.Clock, c.now)
	}
	c.push = push
	if !push {
		c.stop(timerPush)
	}
}

// sawMore notes that the seen set grew.
func (c *core) sawMore() { c.dirty, c.stale = true, true }

// maxOlder bounds core.older.
const maxOlder = 1024

// noteOlder remembers a node that speaks a wire version without partitions.
func (c *core) noteOlder(id peer.ID) {
	for _, known := range c.older {
		if known == id {
			return
		}
	}
	if len(c.older) >= maxOlder {
		c.older = c.older[1:]
	}
	c.older = append(c.older, id)
}

// end is the end: no deadline, no further mail. The last view has this node removed, or Down.
func (c *core) end(kind EndKind, by peer.ID, reason string) {
	if c.phase == ended {
		return
	}
	c.phase, c.stale = ended, true
	c.timers = [timerCount]timer{}
	c.over = &Ended{Kind: kind, By: by, At: c.now, Reason: reason}
	if c.st != nil && kind != EndDowned && c.st.Has(c.self) {
		c.st = c.st.Without(c.self)
	}
}
