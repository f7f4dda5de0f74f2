// Desk: the requests under way.

package quorum

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// phase is what a request waits for.
type phase uint8

const (
	reads  phase = iota // for R answers
	leads               // for the replica that makes the change
	writes              // for W acknowledgements
	looks               // for the answers of all replicas, to show them
	over                // for nothing: its outcome is reported, late answers are repaired
)

// request is one read or write, or a change that this replica makes for another node.
type request struct {
	number   uint64  // of the caller
	tag      uint64  // in messages
	asker    peer.ID // the node of the caller, zero for this one
	asked    uint64  // its tag there
	key      []byte
	to       []peer.ID
	phase    phase
	deadline time.Duration

	wish      *PutCommand   // of a write
	value     Versioned     // of a write of siblings: what it wishes for, and then what was made of it
	tried     []peer.ID     // replicas that were to make the change; of these, refused could not
	passed    time.Duration // when the last of them was asked
	elsewhere bool          // another node makes the change
	answered  []peer.ID     // to the read, or the look
	answers   []Entry       // what each of them has
	whole     int           // of these, those that lack nothing
	got       Entry         // all that they hold
	entry     Entry         // what is written
	acked     []peer.ID
	refused   []peer.ID // the key has too many siblings there; of a look: those that lack something of the group
}

// noteLook takes the answer of a replica to a look.
func (r *request) noteLook(from peer.ID, x *message, mode Mode) {
	r.answered, r.answers = append(r.answered, from), append(r.answers, x.entry.own())
	r.got, _ = r.got.Merge(x.entry, mode)
	if x.lacking {
		r.refused = append(r.refused, from)
	}
}

// look is what is known of one replica by now.
func (r *request) look(id peer.ID, up bool, mode Mode) Look {
	l := Look{Disk: id, Up: up, Lacking: slices.Contains(r.refused, id)}
	if k := slices.Index(r.answered, id); k >= 0 {
		l.Answered, l.Entry, l.Behind = true, r.answers[k], r.got.lacks(r.answers[k], mode)
	}
	return l
}

// has returns how many replicas have answered or acknowledged, and how many have to.
func (r *request) has(c *Config) (have, need int) {
	if r.phase == reads {
		return r.whole, c.R
	}
	return len(r.acked), c.W
}

// asksAgainAt is when another replica is to make a change of which nothing is heard; false for none.
func (r *request) asksAgainAt(timeout time.Duration) (at time.Duration, ok bool) {
	return r.passed + timeout/2, r.phase == leads && r.elsewhere && r.passed+timeout/2 < r.deadline
}

// desk is the requests under way.
type desk struct {
	requests []*request
	salt     uint64 // of their tags
	issued   uint64 // tags
}

// enter puts a request on the desk, under a tag that no process of this replica had before. Hints have those with the
// highest bit.
func (k *desk) enter(r *request) {
	k.issued++
	r.tag = (k.salt + k.issued) &^ hintBit
	k.requests = append(k.requests, r)
}

// find returns the request of a message from one of its replicas.
func (k *desk) find(from peer.ID, number uint64) *request {
	for _, r := range k.requests {
		if r.tag == number && slices.Contains(r.to, from) {
			return r
		}
	}
	return nil
}

// ends drops a request that nothing more is expected of.
func (k *desk) ends(r *request) {
	whole := r.wish == nil && len(r.answered) == len(r.to)
	if r.phase == over && (r.elsewhere || whole || len(r.acked)+len(r.refused) == len(r.to)) {
		k.requests = slices.DeleteFunc(k.requests, func(o *request) bool { return o == r })
	}
}
