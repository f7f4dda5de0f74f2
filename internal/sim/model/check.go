// What is demanded of a state in which nothing happens any more by itself.

package model

import "fmt"

// atRest looks at a state in which nothing is left to happen that has to happen, and says what is wrong with it.
func (c *Config) atRest(w *world) string {
	for i := range c.all() {
		n := &w.nodes[i]
		if !n.awake() {
			continue
		}
		if n.gated {
			return fmt.Sprintf("STUCK: n%d is suspended for ever, and waits for %v", i, n.doubts)
		}
		if newProcess(c, w).leavesStill(i) {
			return fmt.Sprintf("STUCK: n%d leaves for ever, and others could have what it hosts", i)
		}
		for shard := range int(c.Shards) {
			if what := c.placeAtRest(w, i, shard); what != "" {
				return what
			}
		}
		if what := c.messagesAtRest(w, i); what != "" {
			return what
		}
	}
	return c.statesAtRest(w)
}

// statesAtRest demands that every state that no fault has hit lives in an instance.
func (c *Config) statesAtRest(w *world) string {
	for shard := range int(c.Shards) {
		lives := !c.State || w.unsure.has(shard)
		for i := range c.all() {
			h := &w.nodes[i].places[shard].host
			lives = lives || w.nodes[i].alive && h.state == live && h.box.count == w.had[shard]
		}
		if !lives {
			return fmt.Sprintf("LOST: %v was never taken up", w.had[shard])
		}
	}
	return ""
}

// placeAtRest looks at one shard at one node.
func (c *Config) placeAtRest(w *world, i, shard int) string {
	p := &w.nodes[i].places[shard]
	switch {
	case p.slot.parked.n > 0:
		return fmt.Sprintf("STUCK: n%d parks %v for ever", i, p.slot.parked.all())
	case p.host.state == draining:
		return fmt.Sprintf("STUCK: n%d drains for ever: it has markers of %v, and wants those of %v%s", i, p.host.got,
			p.host.need, map[bool]string{true: "; a handler waits for an answer"}[p.host.busy])
	case p.host.busy:
		return fmt.Sprintf("STUCK: a handler at n%d waits for an answer for ever", i)
	case p.host.state == handing:
		return fmt.Sprintf("STUCK: n%d waits for ever for who takes what is left", i)
	}
	return ""
}

// messagesAtRest looks at what a node has sent.
func (c *Config) messagesAtRest(w *world, i int) string {
	for q := range w.nodes[i].sent {
		m := newMsg(i, int(q))
		if (w.handled[i]|w.lossy[i])>>q&1 == 0 {
			return fmt.Sprintf("LOST: message %v was never handled", m)
		}
		if c.isAsk(m) && !w.faults && (w.answered[i]|w.lossy[i])>>q&1 == 0 {
			return fmt.Sprintf("SILENT: ask %v was handled and never ended", m)
		}
	}
	return ""
}
