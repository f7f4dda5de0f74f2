// What a Store remembers of the records that it read or wrote, so that a commit need not read them first. It is a
// guess: each commit compares it with what is stored.

package etcd

import (
	"maps"
	"sync"

	"github.com/kith-io/kith/store"
)

const (
	// mostKnown is how much each of the two generations of known holds: records and numbers of marks.
	mostKnown = 1 << 15
	// mostNumbers is the most numbers of marks that are kept of one record.
	mostNumbers = 256
)

// seen is what is known of a record, or of a shard's floor, which is in version.
type seen struct {
	rev     int64 // of its key, 0: there is none
	version uint64
	nonce   [16]byte
	isDue   bool
	due     int64
	unsent  bool
	// numbers are those of the entity's marks, 0 for none, as long as the key has rev. It is not changed.
	numbers map[string]uint64
}

// seenOf is what is known of a record that was read, or is written.
func seenOf(r *store.Record, rev int64) seen {
	if rev == 0 {
		return seen{}
	}
	s := seen{rev: rev, version: r.Version, nonce: r.Nonce, unsent: len(r.Outbox) > 0}
	if !r.Due.IsZero() {
		s.isDue, s.due = true, r.Due.UnixMilli()
	}
	return s
}

// known holds the latest of them.
type known struct {
	mu         sync.Mutex
	young, old map[string]seen
	weight     int // of young
}

// get returns what is known behind a key.
func (k *known) get(key string) (seen, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.find(key)
}

func (k *known) find(key string) (seen, bool) {
	if s, ok := k.young[key]; ok {
		return s, true
	}
	s, ok := k.old[key]
	return s, ok
}

// put says what is behind a key.
func (k *known) put(key string, s seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(key, s)
}

func (k *known) set(key string, s seen) {
	was, ok := k.young[key]
	weight := 1 + len(s.numbers)
	if ok {
		k.weight -= 1 + len(was.numbers)
	}
	if k.young == nil || k.weight+weight > mostKnown {
		k.old, k.young, k.weight = k.young, map[string]seen{}, 0
	}
	k.young[key] = s
	k.weight += weight
}

// read says what was read behind a key: numbers of the same revision stay.
func (k *known) read(key string, s seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is, ok := k.find(key); ok && is.rev == s.rev {
		s.numbers = is.numbers
	}
	k.set(key, s)
}

// add adds numbers of marks that were read while the key of their record had that revision.
func (k *known) add(key string, rev int64, numbers map[string]uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is, ok := k.find(key); ok && is.rev == rev && rev != 0 {
		is.numbers = merged(is.numbers, numbers)
		k.set(key, is)
	}
}

// merged returns a map of both, of the second alone where it would be too large, of none where that is.
func merged(was, more map[string]uint64) map[string]uint64 {
	if len(more) > mostNumbers {
		return nil
	}
	all := maps.Clone(more)
	if all == nil {
		all = map[string]uint64{}
	}
	if len(was)+len(more) <= mostNumbers {
		for from, n := range was { // into a map: no order
			if _, ok := all[from]; !ok {
				all[from] = n
			}
		}
	}
	return all
}

// drop forgets a key.
func (k *known) drop(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is, ok := k.young[key]; ok {
		k.weight -= 1 + len(is.numbers)
		delete(k.young, key)
	}
	delete(k.old, key)
}
