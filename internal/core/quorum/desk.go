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
	writes              // for W acknowledgements
	over                // for nothing: its outcome is reported, late answers are repaired
)

// request is one read or write.
type request struct {
	number   uint64 // of the caller
	key      []byte
	to       []peer.ID
	phase    phase
	deadline time.Duration

	wish     *PutCommand // of a write
	answered []peer.ID   // to the read
	answers  []Entry     // what each of them has
	whole    int         // of these, those that lack nothing
	got      Entry       // all that they hold
	entry    Entry       // what is written
	acked    []peer.ID
	refused  []peer.ID // the key has too many siblings there
}

// desk is the requests under way.
type desk struct {
	requests []*request
	salt     uint64 // of their numbers in messages
}

// find returns the request of a message from one of its replicas.
func (k *desk) find(from peer.ID, number uint64) *request {
	for _, r := range k.requests {
		if k.tag(r) == number && slices.Contains(r.to, from) {
			return r
		}
	}
	return nil
}

// tag is the number of a request in messages, which no process of this replica had before. Hints have those with the
// highest bit.
func (k *desk) tag(r *request) uint64 { return (r.number + k.salt) &^ hintBit }

// ends drops a request that nothing more is expected of.
func (k *desk) ends(r *request) {
	if r.phase != over {
		return
	}
	if whole := r.wish == nil && len(r.answered) == len(r.to); whole || len(r.acked)+len(r.refused) == len(r.to) {
		k.requests = slices.DeleteFunc(k.requests, func(o *request) bool { return o == r })
	}
}
