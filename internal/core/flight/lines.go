// Lines: what a replayed node saw and decided, for people.

package flight

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// What a Line is about.
const (
	WhatFrame    = "frame"    // a control frame; among all lines only
	WhatTick     = "tick"     // likewise
	WhatCommand  = "command"  // what this node was asked to do
	WhatRefused  = "refused"  // what it answered with an error
	WhatEvent    = "event"    // of membership, reachability and convergence
	WhatDecision = "decision" // of the resolver, with its reasons
	WhatResolver = "resolver" // what else the resolver reported
	WhatSuspend  = "suspend"  // it stops handling messages, or goes on
	WhatShard    = "shard"    // of sharding: coordinators, homes, moves
	WhatEnded    = "ended"    // its membership
)

// Line is one thing that a node was given, saw or decided.
type Line struct {
	At   time.Duration // on the node's clock
	Verb uint64
	What string
	Text string // untrusted: it holds what peers have named
}

// Lines makes lines of steps. The zero value is ready.
type Lines struct {
	All   bool // frames, ticks and the inner commands of a runtime, too
	names map[route.TypeID]string
}

// Of calls tell for each line of a step.
func (l *Lines) Of(s *Step, tell func(Line)) {
	line := func(what, format string, args ...any) {
		tell(Line{s.At, s.Verb, what, fmt.Sprintf(format, args...)})
	}
	l.input(s, line)
	if s.Err != nil {
		line(WhatRefused, "%v", s.Err)
	}
	e := s.Effects
	for i := range e.Events {
		line(WhatEvent, "%s", e.Events[i])
	}
	for i := range e.Decisions {
		line(WhatDecision, "%s", e.Decisions[i])
	}
	for i := range e.ResolverEvents {
		line(WhatResolver, "%s", e.ResolverEvents[i].Text)
	}
	if o := e.Suspend; o != nil && o.On {
		line(WhatSuspend, "stops: %s", o.Why)
	} else if o != nil {
		line(WhatSuspend, "goes on: %s", o.Why)
	}
	for i := range e.ShardEvents {
		line(WhatShard, "%s", l.sharding(&e.ShardEvents[i]))
	}
	if e.Ended != nil {
		line(WhatEnded, "%s: %s", e.Ended.Kind, e.Ended.Reason)
	}
}

// input tells what the node was given.
func (l *Lines) input(s *Step, line func(what, format string, args ...any)) {
	switch c := s.Command.(type) {
	case nil:
		switch {
		case l.All && s.Kind != 0:
			line(WhatFrame, "%s from %s", s.Kind, s.From)
		case l.All:
			line(WhatTick, "deadlines")
		}
		return
	case shard.RegisterCommand:
		if l.names == nil {
			l.names = map[route.TypeID]string{}
		}
		l.names[c.Settings.ID()] = c.Settings.Name
		line(WhatCommand, "register type %q: %d shards, role %q", c.Settings.Name, c.Settings.Shards, c.Settings.Role)
		return
	case shard.WantCommand, shard.StoppedCommand, shard.RefusedCommand, shard.LoadsCommand, shard.MarkedCommand,
		shard.MarkAgainCommand, shard.HandOverCommand, membership.RecordedCommand:
		if !l.All {
			return // of the runtime, by the thousand
		}
	}
	line(WhatCommand, "%.300s", fmt.Sprintf("%T%+v", s.Command, s.Command))
}

// sharding is one event of sharding in words.
func (l *Lines) sharding(e *shard.Event) string {
	name := l.names[e.Type]
	if name == "" {
		name = fmt.Sprintf("%08x", uint32(e.Type)) // registered before the record begins
	}
	text := fmt.Sprintf("%s %s", e.Kind, name)
	switch e.Kind {
	case shard.CoordinatorStarted, shard.CoordinatorReady, shard.CoordinatorStopped:
		return fmt.Sprintf("%s at %s, term %d", text, e.Home, e.Term)
	case shard.ShardsWait:
		return fmt.Sprintf("%s of %s: %d shards, until %v after the node's start", text, e.Home, e.Shards, e.Until)
	case shard.StrategyFault:
		return fmt.Sprintf("%s, %d times: %v", text, e.Shards, e.Err)
	case shard.MoveBegan, shard.MoveMarked, shard.MoveHandedOver, shard.MoveDone, shard.MoveAborted, shard.MoveUntaken,
		shard.MoveReturned:
		text = fmt.Sprintf("%s/%d from %s to %s, move %d.%d", text, e.Shard, e.Home, e.To, e.Number.Term, e.Number.Seq)
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return text
	}
	return fmt.Sprintf("%s/%d at %s under %s", text, e.Shard, e.Home, e.Fence)
}
