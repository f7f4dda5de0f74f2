// Dead letters: what the owner of a shard does with them.

package delivery

import "slices"

const (
	lettersAtOnce = 8         // that one call of the store reads
	pageBytes     = 256 << 10 // at which a page of dead letters is full
)

// serves does a request that is about dead letters. False: the store does not answer, and it is done later.
func (l *ledger) serves(o *op) bool {
	var failed *failure
	switch o.kind {
	case opList:
		failed = l.lists(o)
	case opFind:
		failed = l.revives(o)
	default:
		failed = l.digs(o, opDiscard, nil)
	}
	switch {
	case failed == nil:
	case failed.code == codeAway && l.returns(o):
		return false
	default:
		o.answer(failed.answer())
	}
	return true
}

// returns puts a request off until later, and reports whether it will be done.
func (l *ledger) returns(o *op) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.asks++
		l.queue = slices.Insert(l.queue, 0, o)
	}
	return l.lost == nil
}

// lists answers with a page.
func (l *ledger) lists(o *op) *failure {
	l.mu.Lock()
	from, found := slices.BinarySearch(l.dead, o.number)
	if found {
		from++
	}
	numbers := slices.Clone(l.dead[from:min(from+o.most, len(l.dead))])
	behind := len(l.dead) - from - len(numbers)
	l.mu.Unlock()
	var have []uint64
	var list [][]byte
	size, rest := 0, numbers
	for len(rest) > 0 && size < pageBytes {
		some := rest[:min(lettersAtOnce, len(rest))]
		rest = rest[len(some):]
		found, failed := l.finding(some...)
		if failed != nil {
			return failed
		}
		for _, n := range some {
			have, list = append(have, n), append(list, found[n]) // one that is gone is shown as one that cannot be read
			size += len(found[n])
		}
	}
	o.answer(appendPage([]byte{byte(codeOK)}, behind+len(rest) > 0, have, list))
	return nil
}

// finding reads dead letters.
func (l *ledger) finding(numbers ...uint64) (map[uint64][]byte, *failure) {
	ids := make([]string, len(numbers))
	for i, n := range numbers {
		ids[i] = idOf(n)
	}
	ctx, cancel := l.d.within()
	defer cancel()
	list, err := l.d.store.Load(ctx, l.shard, l.fence, ids...)
	if !l.judge(err) {
		return nil, fails(codeAway, err)
	}
	found := map[uint64][]byte{}
	for _, r := range list {
		if n, is := numberOf(r.ID); is && len(r.Outbox) == 0 {
			found[n] = r.State
		}
	}
	return found, nil
}

// revives makes a dead letter the last message of its receiver, in one commit.
func (l *ledger) revives(o *op) *failure {
	found, failed := l.finding(o.number)
	switch {
	case failed != nil:
		return failed
	case found[o.number] == nil:
		return fails(codeNoLetter, nil)
	}
	at, err := parseLetter(found[o.number])
	if err != nil {
		return fails(codeBad, err)
	}
	at.made, at.tries, at.reason = l.d.ground.Wall().UnixMilli(), 0, ""
	return l.digs(o, opRevive, &message{letter: at})
}

// digs takes a dead letter off the list, and writes what follows from that.
func (l *ledger) digs(o *op, kind opKind, m *message) *failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, found := slices.BinarySearch(l.dead, o.number)
	switch {
	case l.lost != nil:
		return l.lost
	case !found:
		return fails(codeNoLetter, nil)
	case m != nil && !l.room(m):
		l.d.full.Add(1)
		return l.isFull()
	}
	l.dead = slices.Delete(l.dead, i, i+1)
	if m != nil {
		l.holds(m, 1)
	}
	o.kind, o.m = kind, m
	l.asks++
	l.puts(o)
	return nil
}
