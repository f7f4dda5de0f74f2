// Refusals: what this node refuses of another one until it is told, and reports of what was not delivered.

package driver

import (
	"sync"

	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// refusals gathers what is refused of one sender until it is told. Safe for concurrent use.
type refusals struct {
	mu   sync.Mutex
	list plane.Refusals
}

// add counts one refused tell and reports whether there was room to tell its sender.
func (rs *refusals) add(k plane.RefusalKey, id []byte) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.list.Add(k, id)
}

// take returns what was gathered, sorted, and starts anew.
func (rs *refusals) take() []*plane.Refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.list.Take()
}

// Undelivered reports messages of Tell that were accepted here and not delivered. Err says why.
type Undelivered struct {
	Type    string
	Shard   route.ShardID
	Reason  route.Reason
	Peer    peer.ID  // the node that refused them or was lost, this one included; zero: they had not left for any
	Limit   int      // the bound that is reached there, as RefusedError has it; zero without one, or when it is not known
	Count   uint64   // messages since the last report of this kind
	Samples []string // ids of at most four of them
}

// Err returns why, matching one of the errors of delivery: a *RefusedError, which names the node and the bound, when a
// bound is reached there, else a *PeerError if it concerns a node.
func (u *Undelivered) Err() error {
	switch {
	case boundUnit(u.Reason) != "" && u.Peer != peer.ID{}:
		return &RefusedError{u.Peer, u.Type, u.Reason, u.Limit}
	case u.Peer != peer.ID{}:
		return &PeerError{u.Peer, u.Type, u.Reason}
	}
	return u.Reason.Err()
}
