// Messages: where each is, and what nodes do with it.

package instances

import (
	"fmt"

	"github.com/kith-io/kith/cluster"
)

// fault notes what must never be; the first of a step stands.
func (r *turn) fault(format string, args ...any) {
	if r.bad == "" {
		r.bad = fmt.Sprintf(format, args...)
	}
}

// sender returns the node that sends message m.
func (c *compiled) sender(m int) int { return int(c.Senders[m] - '0') }

// first reports whether m is the next of its sender: messages of one are sent in their order.
func (c *compiled) first(s *state, m int) bool {
	for k := range m {
		if c.sender(k) == c.sender(m) && s.sent[k].where == unsent {
			return false
		}
	}
	return true
}

// moves takes the steps of message m.
func (r *turn) moves(m int) {
	s := r.s
	switch d := s.sent[m]; d.where {
	case unsent:
		r.sends(m)
	case flies:
		to := int(d.to)
		if r.c.buffers {
			r.arrives(m)
			return
		}
		for x := range nodes {
			if r.reaches(x, uint8(to)) {
				r.comes(m, x)
			}
		}
	case calls:
		t := r.fork()
		t.sent[m] = message{where: handled}
		t.on[d.to].here[0].busy = 0
		r.take(t, note{"n%d has handled message %d", int(d.to), m + 1, 0, false})
	case backs:
		t := r.fork()
		t.sent[m] = message{where: reported}
		r.take(t, note{"message %d comes back to n%d", m + 1, r.c.sender(m), 0, false})
	case waits:
		r.flushes(m)
	}
}

// sends makes the sender of m send it.
func (r *turn) sends(m int) {
	c, s := r.c, r.s
	x := c.sender(m)
	o := &s.on[x]
	if !s.alive.has(x) || !c.first(s, m) {
		return
	}
	to := o.row.Target(0)
	t := r.fork()
	switch {
	case to == nobody:
		if !s.ended {
			return
		}
		t.sent[m].where = reported // at once
	case c.buffers:
		t.sent[m].where = waits
	case !c.way(s, to):
		if !s.on[to].drain {
			return // no way is known
		}
		t.sent[m].where = reported // at once, or later when there is one
	case !s.alive.has(int(to)):
		t.sent[m].where = lost
	default:
		t.sent[m] = message{where: flies, to: to, at: o.row.At}
	}
	r.take(t, note{"n%d sends message %d to n%d", x, m + 1, int(to), false})
}

// way reports whether a node has a shard by which messages come, or others do not know yet that it has crashed.
func (c *compiled) way(s *state, to uint8) bool {
	return !s.left.has(int(to)) && !s.on[to].doors
}

// row is the table by which x deals with what was sent by the table of a stamp: that of its membership, from then on,
// where the partition here has not looked at it yet, and the sender has.
func (c *compiled) row(t *state, x int, at Stamp) *Placed {
	if at > t.on[x].row.At && c.keeps(looksFirst) {
		t.on[x].row = t.view[x].Placed
	}
	return &t.on[x].row
}

// comes has message m come to node x.
func (r *turn) comes(m, x int) {
	c, s := r.c, r.s
	d, o := s.sent[m], &s.on[x]
	if o.here[0].busy != 0 {
		return // it waits in the mailbox
	}
	t := r.fork()
	at := d.at
	row := c.row(t, x, at)
	ch, _ := row.pending(0)
	over := ch.At != 0 && (o.over[0] == ch.At || ch.Complete)
	what, to := c.Judge(row, uint8(x), 0, at, over, o.here[0].live)
	early := ch.At != 0 && ch.From == uint8(x) && !over
	if what == Goes && early && !c.mayAsk(t, x, 0, ch) {
		what = Takes
	}
	if what == Goes && ch.At != 0 && ch.From == uint8(x) {
		t.on[x].asked[0] = ch.At
	}
	switch {
	case what == Takes:
		r.makes(t, x, 0, max(row.At, at), c.RankOf(row, uint8(x), 0, at))
		r.handles(t, m, x)
		r.take(t, note{"message %d comes to n%d, which handles it", m + 1, x, 0, false})
		return
	case what == Refuses:
		r.refuses(t, m, x, "by its table")
	case ch.At != 0 && ch.From == uint8(x) && d.at > row.At && d.hops > 0 && c.comesYet(s, d.at):
		return // it is kept until the table has come
	case d.hops == maxHops, int(to) == x:
		r.refuses(t, m, x, "it was sent on too often")
	case !c.way(s, to):
		if !s.on[to].drain {
			return // it is kept until a way is known
		}
		r.refuses(t, m, x, "it knows no way")
		if early && o.asked[0] != ch.At {
			r.fault("REFUSED: message %d by n%d, which has not handed the instance over", m+1, x)
		}
	case !s.alive.has(int(to)):
		t.sent[m] = message{where: lost}
	default:
		t.sent[m] = message{where: flies, to: to, at: d.at, hops: d.hops + 1}
		if c.keeps(laterStampGoesOn) {
			t.sent[m].at = max(d.at, row.At)
		}
		r.take(t, note{"message %d comes to n%d, which sends it on to n%d", m + 1, x, int(to), false})
		return
	}
	r.take(t, note{"message %d comes to n%d, which refuses it", m + 1, x, 0, false})
}

// comesYet reports whether a node that lives has a table of that stamp, or a later one, and others wait for it.
func (c *compiled) comesYet(s *state, at Stamp) bool {
	for x := range nodes {
		if s.alive.has(x) && s.view[x].At >= at && c.keeps(waitsForTable) {
			return true
		}
	}
	return false
}

// handles has the instance on x handle message m.
func (r *turn) handles(t *state, m, x int) {
	c := r.c
	if !c.Slow {
		t.sent[m] = message{where: handled}
		return
	}
	t.sent[m] = message{where: calls, to: uint8(x)}
	t.on[x].here[0].busy = uint8(m + 1)
	for y := range nodes {
		if y != x && t.on[y].here[0].busy != 0 && c.Way.Old != cluster.OldKeeps && t.mistakes == 0 {
			r.fault("TWO HANDLE: n%d and n%d", x, y)
		}
	}
}

// refuses has x refuse message m.
func (r *turn) refuses(t *state, m, x int, why string) {
	c := r.c
	t.sent[m] = message{where: backs, to: uint8(x)}
	if c.sender(m) == x {
		t.sent[m] = message{where: reported}
	}
	may := c.Way.Old == cluster.OldDrops || c.Way.Late == cluster.LateDrops || t.ended
	if !may && t.crashes == 0 && t.mistakes == 0 && !c.gives(t) {
		r.fault("REFUSED: message %d by n%d, %s, in a planned move", m+1, x, why)
	}
}

// gives reports whether what is sent in planned moves may be refused meanwhile: while two nodes drain, which may hand
// an instance to each other, or one does and partitions look at the table late.
func (c *compiled) gives(t *state) bool {
	n := 0
	for x := range nodes {
		if t.on[x].drain {
			n++
		}
	}
	return n > 1 || n > 0 && c.lags != 0
}
