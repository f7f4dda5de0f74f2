// The check of watches: what is reported is true, reported once, and reported at all (SHD-12). It knows instances from
// their handlers, not from the machines.

package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// WatchKey names an entity.
type WatchKey struct {
	Type route.TypeID
	ID   string
}

// Watches knows the instances of entities that are watched, or watch.
type Watches struct {
	c    *Checker
	of   map[WatchKey][]*Instance
	Told [entity.EndCauses]int // by cause
}

// NewWatches returns the check of watches of a world.
func NewWatches(c *Checker) *Watches { return &Watches{c: c, of: map[WatchKey][]*Instance{}} }

// Instance is one handler that was made.
type Instance struct {
	w     *Watches
	p     *world.Process
	key   WatchKey
	shard route.ShardID
	fence route.Fence
	began time.Duration
	end   time.Duration // -1: it has not ended by itself
	why   entity.EndCause

	watches map[WatchKey]time.Duration // that stand, and since when
	heard   map[heardKey]bool
}

// heardKey is an instance of another entity, by what was reported of it.
type heardKey struct {
	key      WatchKey
	fence    route.Fence
	instance uint64
}

// Begins notes an instance that was made.
func (w *Watches) Begins(p *world.Process, key WatchKey, s route.ShardID, f route.Fence) *Instance {
	i := &Instance{w: w, p: p, key: key, shard: s, fence: f, began: w.c.w.Now, end: -1,
		watches: map[WatchKey]time.Duration{}, heard: map[heardKey]bool{}}
	w.of[key] = append(w.of[key], i)
	return i
}

// Ends notes that it has ended.
func (i *Instance) Ends(why entity.EndCause) {
	if i.end < 0 {
		i.end, i.why = i.w.c.w.Now, why
	}
}

// Unmade forgets one that has never lived: it did not take up its state.
func (i *Instance) Unmade() {
	list := i.w.of[i.key]
	i.w.of[i.key] = slices.DeleteFunc(list, func(o *Instance) bool { return o == i })
}

// lives reports whether a handler may be called for it: nobody has ended it, and its shard lives on its process.
func (i *Instance) lives() bool {
	if i.end >= 0 || !i.p.Alive {
		return false
	}
	r := i.p.Region(i.key.Type)
	s := r.Lives(i.shard)
	return s != nil && s.Fence() == i.fence && i == i.w.newest(i)
}

// newest returns the latest instance of an entity under the ownership of i: without a resolver there may be more than
// one owner.
func (w *Watches) newest(i *Instance) *Instance {
	list := w.of[i.key]
	for k := len(list) - 1; k >= 0; k-- {
		if o := list[k]; o.p == i.p && o.fence == i.fence {
			return o
		}
	}
	return nil
}

// Watches notes a watch of an entity that was accepted.
func (i *Instance) Watches(of WatchKey) {
	if _, is := i.watches[of]; !is {
		i.watches[of] = i.w.c.w.Now
	}
}

// Unwatches notes that one was taken back.
func (i *Instance) Unwatches(of WatchKey) { delete(i.watches, of) }

// Told judges a report to an instance.
func (i *Instance) Told(e entity.Ended) {
	w, c := i.w, i.w.c
	w.Told[e.Cause]++
	key := WatchKey{route.TypeOf(e.Type), e.ID}
	violate := func(what string) {
		c.Violate(i.p, "watches", "%s/%s is told that %s/%s has ended (%s, %s, instance %d): %s", c.w.TypeName(i.key.Type),
			i.key.ID, e.Type, e.ID, e.Cause, world.FenceName(e.Fence), e.Instance, what)
	}
	since, stands := i.watches[key]
	if !stands {
		violate("it has not watched it, was told already, or has taken that back")
		return
	}
	delete(i.watches, key)
	if h := (heardKey{key, e.Fence, e.Instance}); e.Instance != 0 {
		if i.heard[h] {
			violate("it was told of this instance before")
		}
		i.heard[h] = true
	}
	if what := w.untrue(i.p, key, since, &e); what != "" {
		violate(fmt.Sprintf("watched since %v: %s%s", since, what, w.History(key)))
	}
}

// History says of an entity which instances it had.
func (w *Watches) History(key WatchKey) (s string) {
	for _, o := range w.of[key] {
		s += fmt.Sprintf("; one at %s under %s from %v", w.c.w.Name(o.p.ID), world.FenceName(o.fence), o.began)
		if o.end >= 0 {
			s += fmt.Sprintf(" to %v, %s", o.end, o.why)
		}
	}
	return s
}

// untrue says what is wrong with the report of an entity that is watched since some moment, "" when it is true.
func (w *Watches) untrue(p *world.Process, key WatchKey, since time.Duration, e *entity.Ended) string {
	has := func(fits func(*Instance) bool) bool {
		return slices.ContainsFunc(w.of[key], func(o *Instance) bool { return o.fence == e.Fence && fits(o) })
	}
	switch e.Cause {
	case entity.EndedNone:
		if has(func(o *Instance) bool { return o.began < since && o.lives() && !o.p.Paused() }) {
			return "it has lived all the time"
		}
	case entity.EndedLost:
		if !w.lost(p, key, e) && !has(func(o *Instance) bool { return !o.lives() }) {
			return "its node is not lost"
		}
	case entity.EndedLeft:
		if e.Instance == 0 {
			if !w.lost(p, key, e) {
				return "its node has not left"
			}
			return ""
		}
		fallthrough
	case entity.EndedPassivated, entity.EndedPanicked, entity.EndedMoved:
		// A watch that comes while a run goes on hears of an instance that ended earlier in it; none has come since then.
		next := func(o *Instance) bool {
			return o.end >= since || !has(func(n *Instance) bool { return n.began > o.end && n.began <= since })
		}
		if e.Instance == 0 || !has(func(o *Instance) bool { return o.end >= 0 && o.why == e.Cause && next(o) }) {
			return "no instance has ended so since it is watched"
		}
	case entity.EndedOld:
		if !w.c.w.Config.Data.OldCredit {
			return "no node is older"
		}
	default:
		return "there is no such cause here"
	}
	return ""
}

// lost reports whether the node that hosted a shard under a fence is lost for a process: no member, Down or given up.
func (w *Watches) lost(p *world.Process, key WatchKey, e *entity.Ended) bool {
	r := p.Region(key.Type)
	n, _ := r.Type.ShardOf(key.ID)
	q := w.c.hosted[hostedKey{world.ShardKey{Type: key.Type, Shard: n}, e.Fence}]
	if q == nil {
		return false
	}
	m, in := p.View.Member(q.ID)
	if !in || m.Status == membership.Down {
		return true
	}
	return slices.ContainsFunc(p.View.Accusations, func(a membership.Accusation) bool {
		return a.Observer == p.ID && a.Quarantined && a.Subject == q.ID
	})
}

// hostedKey is an ownership.
type hostedKey struct {
	key   world.ShardKey
	fence route.Fence
}

// Untold returns a watch that is due for a report: its entity lives nowhere. Nil: there is none. mayLive says whether
// some node may host a type.
func (w *Watches) Untold(mayLive func(route.TypeID) bool) (by *Instance, of WatchKey, since time.Duration) {
	for _, key := range sorted(w.of) {
		for _, i := range w.of[key] {
			if !i.lives() || i.p.Held() {
				continue
			}
			for _, of := range sorted(i.watches) {
				since = i.watches[of]
				if r := i.p.Region(of.Type); r == nil || r.Refused != nil || !mayLive(of.Type) {
					continue
				}
				if !slices.ContainsFunc(w.of[of], (*Instance).lives) {
					return i, of, since
				}
			}
		}
	}
	return nil, of, 0
}

// Adrift returns how many watches of running processes stand, less how many there are on entities of theirs: none, when
// all have arrived and none was forgotten on either side.
func (w *Watches) Adrift() (n int) {
	for _, p := range w.c.w.Running() {
		standing, watchers := world.Watches(p)
		n += standing - watchers
	}
	return n
}

// sorted returns entities in order.
func sorted[V any](m map[WatchKey]V) []WatchKey {
	list := make([]WatchKey, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b WatchKey) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) })
	return list
}

// String says of an entity which it is.
func (i *Instance) String() string {
	return i.w.c.w.TypeName(i.key.Type) + "/" + i.key.ID + " at " + i.w.c.w.Name(i.p.ID)
}
