// Leaving: a node gives back what it hosts, and its coordinator moves that away.

package model

// leave makes a node give back what it hosts.
func (s owner) leave(i int) {
	n := &s.w.nodes[i]
	n.leaves = true
	s.post(i, s.w.coordinator(n.promise), letter{kind: drainRegion, term: n.promise})
}

// succeeded reports whether another node may be given what a node hosts.
func (s owner) succeeded(i int) bool {
	for k := range s.c.all() {
		if n := &s.w.nodes[k]; k != i && s.c.hosts().has(k) && n.awake() && !n.leaves && !s.w.removed.has(k) &&
			!s.w.nodes[i].knows.has(k) {
			return true
		}
	}
	return false
}

// leavesStill reports whether a node leaves, and hosts what another node may be given.
func (s owner) leavesStill(i int) bool {
	n := &s.w.nodes[i]
	if !n.leaves || !n.alive || s.w.removed.has(i) || !s.succeeded(i) {
		return false
	}
	for shard := range s.c.Shards {
		if n.places[shard].host.state != idle {
			return true
		}
	}
	return false
}

// triesAgain reports whether what a leaver has is tried to be moved, in the view of a coordinator: as often as it takes
// when every member is well, and now and then before it is known that one is not.
func (a *lister) triesAgain(n *node) bool {
	if !a.c.keeps(leaversTryAgain) {
		return a.w.leaver.tries == leaverTries
	}
	for k := range a.c.all() {
		if unwell := !a.w.nodes[k].awake() || a.w.removed.has(k); unwell && !n.knows.has(k) {
			return a.w.leaver.tries > 0
		}
	}
	return true
}
