// Watches: an entity hears that another one has ended. The node of the watched one keeps its watchers.

package entity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Bounds of watches.
const (
	MaxWatches    = 1024     // that one entity has
	MaxWatchers   = 16 << 10 // of one entity
	MaxWatchBytes = 64 << 20 // what all watches take on one node, those of its entities and those on them
)

// ErrWatchesFull is returned by Watch when the entity has MaxWatches, or those of its node take MaxWatchBytes.
var ErrWatchesFull = errors.New("kith: too many watches")

// EndCause says why a watched entity has ended, or why its end will not be reported.
type EndCause uint8

// The causes.
const (
	EndedPassivated EndCause = 1 // its instance let itself go, was idle, or was evicted
	EndedPanicked   EndCause = 2 // a panic ended its instance; a daemon returned an error
	EndedMoved      EndCause = 3 // its shard goes to another node: Ended.Home, where that is known
	EndedLeft       EndCause = 4 // its node leaves the cluster, or has left it
	// EndedLost: its node is Down, removed or given up, or has lost the shard or the lease. Where the node lives it may
	// run on until the takeover time is over, and whether it lived there when the watch came is not known.
	EndedLost EndCause = 5
	EndedNone EndCause = 6 // no instance lived when the watch came: a watch makes none
	EndedFull EndCause = 7 // the watch was not taken: the entity has MaxWatchers, or its node MaxWatchBytes
	EndedOld  EndCause = 8 // the watch was not taken: its node speaks a wire version without watches
)

var endNames = []string{EndedPassivated: "passivated", EndedPanicked: "panicked", EndedMoved: "moved",
	EndedLeft: "left", EndedLost: "lost", EndedNone: "none", EndedFull: "full", EndedOld: "old"}

// EndCauses is how many values an EndCause may have; zero is none of them.
const EndCauses = int(EndedOld) + 1

// String names the cause.
func (c EndCause) String() string { return enum.Name(endNames, c, "end") }

// MarshalText gives the name.
func (c EndCause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (c *EndCause) UnmarshalText(text []byte) error { return enum.Parse(c, text) }

// Ended says that a watched entity has ended: one instance of it, where there was one.
type Ended struct {
	Type, ID string
	Fence    route.Fence // under which it lived, or was believed to live; zero: not known
	// Instance numbers the instances that were watched under one Fence of their shard, as they were. Zero: none is known,
	// as where Cause is EndedLost and its node has not said, EndedNone, EndedFull and EndedOld.
	Instance uint64
	Cause    EndCause
	Home     peer.ID // for EndedMoved and EndedLeft the next home of its shard, zero where that is not known yet
}

// Watcher is one watch on an entity: by which node, and its number there.
type Watcher struct {
	Node   peer.ID
	Number uint64
}

// Watching is what the Runtime of a shard has beside its other methods if its entities may watch, and be watched. None
// of its methods calls back into a shard. Over, Room and Watched are called under the shard's lock, the others where
// handlers run.
type Watching interface {
	// Watch reports to an instance of e when the entity id of a type has ended. Repeating it changes nothing.
	Watch(e *Entity, instance uint32, typ, id string) error
	// Unwatch takes that back: nothing is reported any more.
	Unwatch(e *Entity, instance uint32, typ, id string)
	// Due reports, once, whether a watch still stands when its end is about to be reported. After that it stands no more.
	Due(number uint64) bool
	// Over ends all watches of e but those of one instance; zero: none lives.
	Over(e *Entity, living uint32)
	// Room takes room for n watchers of entities here, or gives -n back. It reports whether there was.
	Room(n int) bool
	// Watched says that the instance of e that they watch has ended, or was none.
	Watched(e *Entity, by []Watcher, instance uint64, why EndCause)
}

// watching is what a shard knows of watches.
type watching struct {
	last uint64                // number of an instance
	of   map[*Entity]*audience // its watchers; looked up, never walked but to forget a node
	told []*told               // ends that entities of this shard are to hear of, in order
}

// audience is the watchers of one entity.
type audience struct {
	instance uint64 // that lives, numbered with its first watcher
	by       map[Watcher]struct{}
	coming   []Watcher // while a run goes on: whether an instance lives is seen at its end
}

// told is the end of another entity that an instance of e is to hear of.
type told struct {
	e        *Entity
	instance uint32
	number   uint64
	Ended
}

// Reply makes it fit where a record has the origin of an ask. It is never called.
func (*told) Reply(uint64, route.Reason, []byte) error { return ErrNoAsk }

// Watch tells this entity once when the entity id of type typ ends: the instance that lives when the watch comes to its
// node; or that none lives: a watch makes none. typ empty is this entity's own type. The end comes as a message that
// nobody asked, in its turn: see Ended. Then the watch is over. Repeating it changes nothing until then. A
// watch ends with the instance that made it, also when that moves. It takes the way of control messages: it neither
// waits for messages that were sent before nor are those sent behind it held up. Errors: route.ErrNotRegistered,
// route.ErrBadID, ErrWatchesFull; route.ErrShardStopping from Stop and in the last calls of a shard that is being
// stopped, ErrNoAsk in a daemon, which gets no messages.
func (c *Context) Watch(typ, id string) error {
	if kept(c) {
		return whose(c)
	}
	w, can := c.s.runtime.(Watching)
	switch {
	case c.halting || c.closing:
		return route.ErrShardStopping
	case !can || c.s.mute():
		return fmt.Errorf("%w: no message comes here that could tell of an end", ErrNoAsk)
	}
	if err := route.CheckID(id); err != nil {
		return err
	}
	if typ == "" {
		typ = c.s.typ.Name
	}
	c.touched, c.watches = true, true
	return w.Watch(c.e, c.e.instance, typ, id)
}

// Unwatch takes a watch of this instance back: its end is not reported any more, even if the message already waits.
func (c *Context) Unwatch(typ, id string) {
	if kept(c) {
		return
	}
	if typ == "" {
		typ = c.s.typ.Name
	}
	if w, can := c.s.runtime.(Watching); can {
		w.Unwatch(c.e, c.e.instance, typ, id)
	}
}

// Ended reports whether the message tells that a watched entity has ended, and of which. Its payload is empty.
func (c *Context) Ended() (Ended, bool) {
	if kept(c) || !c.fired || c.told == nil {
		return Ended{}, false
	}
	return c.told.Ended, true
}

// openEnd readies c for a message that tells of an end and reports whether it is to be delivered.
func (c *Context) openEnd(t *told) bool {
	if t.instance != c.e.instance || c.e.h == nil || !c.s.runtime.(Watching).Due(t.number) {
		return false
	}
	c.open(nil, 0)
	c.fired, c.told = true, t
	return true
}

// ends notes that the call or run has ended an instance.
func (c *Context) ends(why EndCause) {
	switch {
	case c.e.h == nil:
		return
	case c.ended == 0:
		c.ended = why
	default:
		c.more = true
	}
	c.last = why
}

// causeOf says why an instance has ended that was stopped.
func causeOf(why StopReason) EndCause {
	switch why {
	case StopMoved:
		return EndedMoved
	case StopLeaving:
		return EndedLeft
	}
	return EndedPassivated
}

// watchesOf returns what a shard knows of watches.
func watchesOf(s *Shard) *watching {
	if s.watching == nil {
		s.watching = &watching{of: map[*Entity]*audience{}}
	}
	return s.watching
}

// Watch is a verb of a shard: a watcher of the entity id has come. Runtime.Watched follows when that has ended, or at
// once, and so does it when the watch is not taken. ok is false, and nothing has happened, when the shard lives here no
// more.
func Watch(s *Shard, id string, by Watcher) (ok bool) {
	if s.phase == abandoned {
		return false
	}
	e := s.table.find(HashID([]byte(id)), []byte(id))
	switch {
	case e == nil:
		s.runtime.(Watching).Watched(&Entity{id: id}, []Watcher{by}, 0, EndedNone)
	case s.mute():
		enter(s, e, by, s.going)
	case e.act != nil && e.act.phase != held:
		if room(s, e, by) {
			a := audienceOf(s, e)
			a.coming = append(a.coming, by)
		}
	default:
		enter(s, e, by, e.h != nil)
	}
	return true
}

func audienceOf(s *Shard, e *Entity) *audience {
	w := watchesOf(s)
	a := w.of[e]
	if a == nil {
		a = &audience{by: map[Watcher]struct{}{}}
		w.of[e] = a
		e.place |= seen
	}
	return a
}

// enter takes a watcher of an entity; lives: it has an instance.
func enter(s *Shard, e *Entity, by Watcher, lives bool) {
	r := s.runtime.(Watching)
	if !lives {
		r.Watched(e, []Watcher{by}, 0, EndedNone)
		return
	}
	if !room(s, e, by) {
		return
	}
	a := audienceOf(s, e)
	if a.instance == 0 {
		a.instance = number(s)
	}
	a.by[by] = struct{}{}
}

// number returns the next one for an instance.
func number(s *Shard) uint64 {
	s.watching.last++
	return s.watching.last
}

// room takes room for one more watcher of an entity, or tells it that there is none.
func room(s *Shard, e *Entity, by Watcher) bool {
	r, n := s.runtime.(Watching), 0
	if a := s.watching.audience(e); a != nil {
		n = len(a.by) + len(a.coming)
	}
	if n < MaxWatchers && r.Room(1) {
		return true
	}
	r.Watched(e, []Watcher{by}, 0, EndedFull)
	return false
}

// Unwatch is a verb of a shard: a watcher of the entity id is none any more.
func Unwatch(s *Shard, id string, by Watcher) {
	if s.watching == nil {
		return
	}
	if e := s.table.find(HashID([]byte(id)), []byte(id)); e != nil {
		if a := s.watching.of[e]; a != nil {
			leaveAudience(s, e, a, by)
		}
	}
}

func leaveAudience(s *Shard, e *Entity, a *audience, by Watcher) {
	was := len(a.by) + len(a.coming)
	a.coming = slices.DeleteFunc(a.coming, func(w Watcher) bool { return w == by })
	delete(a.by, by)
	s.runtime.(Watching).Room(len(a.by) + len(a.coming) - was)
	tidy(s, e, a)
}

// tidy forgets an audience that nobody is in.
func tidy(s *Shard, e *Entity, a *audience) {
	if len(a.by)+len(a.coming) == 0 {
		delete(s.watching.of, e)
	}
}

// Forget is a verb of a shard: nobody on a node watches its entities any more.
func Forget(s *Shard, node peer.ID) {
	if s.watching == nil {
		return
	}
	for e, a := range s.watching.of { // deletes only: the order does not show
		was := len(a.by) + len(a.coming)
		a.coming = slices.DeleteFunc(a.coming, func(w Watcher) bool { return w.Node == node })
		for w := range a.by { // deletes only: the order does not show
			if w.Node == node {
				delete(a.by, w)
			}
		}
		s.runtime.(Watching).Room(len(a.by) + len(a.coming) - was)
		tidy(s, e, a)
	}
}

// Watchers returns how many watch the entities of a shard.
func Watchers(s *Shard) (n int) {
	if s.watching != nil {
		for _, a := range s.watching.of { // a sum: the order does not show
			n += len(a.by) + len(a.coming)
		}
	}
	return n
}

// watchedOut carries out what a call or a run of e means for watches: those of an instance that is gone are over, and
// its watchers hear that.
func watchedOut(s *Shard, e *Entity, c *Context) {
	why, last, more := c.ended, c.last, c.more
	if c.watches {
		e.place |= seen
	}
	c.ended, c.last, c.more, c.watches = 0, 0, false, false
	if e.place&seen == 0 {
		return
	}
	living := uint32(0)
	if e.h != nil {
		living = e.instance
	}
	s.runtime.(Watching).Over(e, living)
	// Earlier watchers hear of the first instance that the run has ended, those that came during it of the last, unless
	// another one lives by now.
	var late []Watcher
	if a := s.watching.audience(e); more && a != nil && e.h == nil {
		late, a.coming = a.coming, nil
	}
	if why != 0 {
		tellWatchers(s, e, why)
	}
	if len(late) > 0 {
		tellOf(s.runtime.(Watching), e, late, number(s), last)
	}
}

// tellWatchers tells the watchers of e that the instance which they watch has ended. Those that came meanwhile hear it
// too, unless another one lives by now.
func tellWatchers(s *Shard, e *Entity, why EndCause) {
	a := s.watching.audience(e)
	if a == nil {
		return
	}
	list := make([]Watcher, 0, len(a.by)+len(a.coming))
	for w := range a.by { // sorted below: the order does not show
		list = append(list, w)
	}
	if e.h == nil {
		list, a.coming = append(list, a.coming...), nil
	}
	instance := a.instance
	a.instance = 0
	clear(a.by)
	tidy(s, e, a)
	if len(list) == 0 {
		return
	}
	if instance == 0 && why != EndedNone {
		instance = number(s)
	}
	tellOf(s.runtime.(Watching), e, list, instance, why)
}

// tellOf tells a list of watchers, which it sorts, of an instance.
func tellOf(r Watching, e *Entity, list []Watcher, instance uint64, why EndCause) {
	sort.Slice(list, func(i, k int) bool {
		return cmp.Or(list[i].Node.Compare(list[k].Node), cmp.Compare(list[i].Number, list[k].Number)) < 0
	})
	r.Room(-len(list))
	r.Watched(e, list, instance, why)
}

func (w *watching) audience(e *Entity) *audience {
	if w == nil {
		return nil
	}
	return w.of[e]
}

// watchersCome takes the watchers of e that came during a run of it, or while it waited for one.
func watchersCome(s *Shard, e *Entity) {
	a := s.watching.audience(e)
	if a == nil {
		return
	}
	list := a.coming
	a.coming = nil
	s.runtime.(Watching).Room(-len(list))
	for _, by := range list {
		enter(s, e, by, e.h != nil)
	}
	tidy(s, e, a)
}

// runEnded tells the watchers of a daemon that its Run has ended.
func runEnded(s *Shard, e *Entity, c *Context) {
	why := EndedPassivated
	switch {
	case s.phase == abandoned || e.act.spoiled:
		why = EndedLost
	case s.phase != serving:
		why = causeOf(s.why)
	case !c.calm:
		why = EndedPanicked
	}
	tellWatchers(s, e, why)
}

// unseen ends what there is of watches by an entity and on it, which has no instance any more.
func unseen(s *Shard, e *Entity, why EndCause) {
	if e.place&seen == 0 {
		return
	}
	if a := s.watching.audience(e); a != nil && e.h == nil && a.instance == 0 {
		why = EndedNone
	}
	e.h = nil
	s.runtime.(Watching).Over(e, 0)
	tellWatchers(s, e, why)
	e.place &^= seen
}

// TellEnd is a verb of a shard: its entity e is to hear what became of one that an instance of it watches. What comes
// too late is dropped.
func TellEnd(s *Shard, e *Entity, instance uint32, number uint64, end Ended) {
	if s.phase != serving {
		return // the instance is stopped, and its watches are over with it
	}
	w := watchesOf(s)
	w.told = append(w.told, &told{e: e, instance: instance, number: number, Ended: end})
	s.news = true
}

// tellEnds gives ends to entities, as many as one Tick may.
func tellEnds(s *Shard) {
	w := s.watching
	if w == nil {
		return
	}
	for n := 0; n < fireAtOnce && len(w.told) > 0; n++ {
		t := w.told[0]
		w.told[0] = nil
		w.told = w.told[1:]
		e := t.e
		switch {
		case e.act == nil && (e.h == nil || e.instance != t.instance):
		case s.typ.Mode == Blocking:
			s.put(e, record{from: t, mark: t.instance}, nil, nil, scant)
		default:
			handleEnd(s, e, t)
		}
	}
	if len(w.told) == 0 {
		w.told = nil
	}
}

// handleEnd calls a Worker or Inline handler for the end of another entity.
func handleEnd(s *Shard, e *Entity, t *told) {
	began, c := s.enter(e)
	c.timerRoom = MaxTimers - e.running()
	opened := c.openEnd(t)
	if opened {
		c.receive(nil)
	}
	s.leave(c, began)
	if opened {
		s.handled(c, e)
	}
}
