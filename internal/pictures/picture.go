// A picture: lanes over time, what each lane was at any moment, and what happened, numbered.

package main

import (
	"slices"
	"time"
)

// span is one stretch of a lane, or of one shard on it.
type span struct {
	from, to time.Duration
	what     string
}

// mark is a moment that the legend explains, the same on one lane or several.
type mark struct {
	at    time.Duration
	lanes []int
	text  string
}

// message is one from where and when it was sent to where and when it was handled.
type message struct {
	sent, handled time.Duration
	from, to      int
}

// lane is one node.
type lane struct {
	name   string
	states []span
	shards map[uint32][]span
}

// picture is all that is drawn, in virtual time.
type picture struct {
	title    string
	from, to time.Duration
	tick     time.Duration // between two lines of the scale
	rows     int           // how many shards a lane has room for
	gap      float64       // between two lanes
	moves    bool          // whether the phases of moves are marked, and messages drawn
	lanes    []lane
	marks    []mark
	messages []message
}

// enter ends what a lane was and begins another state, "" for none.
func (l *lane) enter(now time.Duration, what string) {
	if n := len(l.states); n > 0 && l.states[n-1].to < 0 {
		if l.states[n-1].what == what {
			return
		}
		l.states[n-1].to = now
	}
	if what != "" {
		l.states = append(l.states, span{now, -1, what})
	}
}

// live begins the stay of a shard, gone ends it.
func (l *lane) live(now time.Duration, shard uint32) {
	l.shards[shard] = append(l.shards[shard], span{now, -1, "live"})
}

func (l *lane) gone(now time.Duration, shard uint32) {
	if n := len(l.shards[shard]); n > 0 && l.shards[shard][n-1].to < 0 {
		l.shards[shard][n-1].to = now
	}
}

// dead ends everything on a lane.
func (l *lane) dead(now time.Duration) {
	l.enter(now, "")
	for shard := range l.shards {
		l.gone(now, shard)
	}
}

// note adds a moment to the legend. What is the same at about the same time is told once.
func (p *picture) note(at time.Duration, lane int, text string) {
	for i := range p.marks {
		m := &p.marks[i]
		if m.text == text && at-m.at < p.tick/10 {
			if !slices.Contains(m.lanes, lane) {
				m.lanes = append(m.lanes, lane)
			}
			return
		}
	}
	p.marks = append(p.marks, mark{at, []int{lane}, text})
}
