// Trouble: what a type on one node knows of a store that does not answer, and reports of it.

package durable

import (
	"log/slog"
	"sync"
	"time"
)

const (
	linesFirst = time.Second // between two lines that say that the store does not answer, at least; it doubles
	linesMost  = time.Minute
	calmAfter  = 10 * time.Minute // without one it begins anew
)

// trouble counts the shards of a type that had their last call of the store fail. Methods are safe for concurrent use.
type trouble struct {
	log      *slog.Logger
	typ      string
	patience time.Duration // how long one call takes at most: a shard that has not failed for longer calls no more

	mu     sync.Mutex
	shards map[any]time.Time // when the last call failed, by its caller
	last   error             // what the last call that failed said
	since  time.Time         // when the first of them failed
	told   bool              // the last line said that they do
	line   time.Time         // when it was
	rest   time.Duration     // before the next one that says so
	silent int               // times that the store did not answer and nothing was said
}

// fails notes that a call failed of which nobody knows whether it had its effect.
func (t *trouble) fails(who any, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	if len(t.shards) == 0 {
		t.since, t.shards = now, map[any]time.Time{}
		t.silent++
	}
	t.shards[who], t.last = now, err
	if t.told || now.Before(t.line.Add(t.rest)) {
		return
	}
	if now.Sub(t.line) > calmAfter {
		t.rest = 0
	}
	t.told, t.line, t.rest = true, now, min(max(2*t.rest, linesFirst), linesMost)
	t.log.Warn("the store of a durable type does not answer", "type", t.typ, "error", err, "shards", len(t.shards),
		"silent", t.silent-1)
	t.silent = 0
}

// prune forgets those that call no more. The lock is held.
func (t *trouble) prune(now time.Time) {
	for who, at := range t.shards { // no order shows
		if now.Sub(at) > t.patience+linesMost {
			t.drop(who)
		}
	}
}

// drop forgets one. The lock is held.
func (t *trouble) drop(who any) {
	if delete(t.shards, who); len(t.shards) == 0 {
		t.told = false
	}
}

// leaves notes that a shard calls no more.
func (t *trouble) leaves(who any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(who)
}

// works notes that a call has had an answer.
func (t *trouble) works(who any, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, fails := t.shards[who]; !fails {
		return
	}
	told := t.told
	if t.drop(who); len(t.shards) == 0 && told {
		t.log.Info("the store of a durable type answers again", "type", t.typ, "after", now.Sub(t.since))
	}
}

// now returns how many shards have trouble, and what the last call that failed said; nil when none has.
func (t *trouble) now(now time.Time) (shards int, last error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	if len(t.shards) == 0 {
		return 0, nil
	}
	return len(t.shards), t.last
}
