// The channels, seen by the sender: control letters, frames of a data connection, and what a step has found wrong.

package model

import "fmt"

// Kinds of letters.
const (
	askHome uint8 = iota
	homeIs
	moveShard
	moveOwner
	stopped
	hostShard
	started
	reportWanted
	report
	transfer
	transferAck
	transferRefused
	abortWanted
	aborted
	unpark
	confirmed
	confirmOwner
	ownerConfirmed
	drainRegion
	stopWanted // without the rule leavers-stay
)

// step is the run of one action. Letters of a node to itself are handled before it ends.
type step struct {
	c     *Config
	w     *world
	bad   string
	local []mail
}

// mail is a letter of a node to itself.
type mail struct {
	at int
	l  letter
}

func (s *step) fail(format string, a ...any) {
	if s.bad == "" {
		s.bad = fmt.Sprintf(format, a...)
	}
}

// post sends a letter. What is sent to the dead is never read; members do not talk with nodes that they have removed.
func (s *step) post(from, to int, l letter) {
	w := s.w
	switch {
	case to < 0:
	case from == to:
		s.local = append(s.local, mail{to, l})
	case w.nodes[to].alive && !w.nodes[from].knows.has(to) && !w.nodes[to].knows.has(from):
		w.ctl[from][to].push(l)
	}
}

// excuse says of a message that it may be lost from now on.
func (s *step) excuse(m msg) { s.w.lossy[m.from()] |= 1 << m.seq() }

// excuseAll says that of what a list holds. A state that is not the last one is no loss.
func (s *step) excuseAll(l *list) {
	for _, m := range l.all() {
		s.excuse(m)
	}
	if shard := l.count.shard(); l.count != 0 && l.count == s.w.had[shard] {
		s.w.unsure = s.w.unsure.and(shard)
	}
}

// lose is the end of a message that nobody will handle.
func (s *step) lose(m msg, format string, a ...any) {
	if s.w.lossy[m.from()]>>m.seq()&1 == 0 && m.bare() != tick {
		s.fail("LOST: message %v "+format, append([]any{m}, a...)...)
	}
}

// transmit puts a frame on the data connection to a node.
func (s *step) transmit(from, to int, f frame) {
	w := s.w
	if !w.nodes[to].alive || w.nodes[to].knows.has(from) || w.nodes[from].knows.has(to) {
		if f.kind == envelope {
			s.excuse(f.m)
		}
		return
	}
	w.dat[from][to].push(f)
}

// hasRoom reports whether a link takes one more envelope.
func (s *step) hasRoom(from, to int) bool {
	return s.c.Room == 0 || s.w.dat[from][to].envelopes() < s.c.Room
}

// mark sends the marker of a move behind everything that is on the link.
func (s *step) mark(i, shard int, to, move uint8) {
	s.transmit(i, int(to), frame{kind: marker, by: uint8(i), shard: uint8(shard), mark: move})
}
