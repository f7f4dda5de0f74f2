// The ledger: which numbered messages each demo entity has received, so that lost, reordered and duplicated ones show.

package main

import (
	"slices"
	"sync"
)

// maxRuns bounds the runs kept per pair of entity and sender. Beyond it the lowest gap is given up: its messages count
// as lost for good, and as duplicates if they should still come.
const maxRuns = 1024

// run is an unbroken range of received numbers, both ends included.
type run struct {
	Lo uint64 `json:"lo"`
	Hi uint64 `json:"hi"`
}

// track is what one entity has received from one sender. Numbers begin at 1 and grow by 1.
type track struct {
	Runs       []run  `json:"runs"`       // ascending, with a gap between any two
	Reordered  uint64 `json:"reordered"`  // came after a higher one
	Duplicated uint64 `json:"duplicated"` // came again
	GivenUp    uint64 `json:"given_up"`   // stand in Runs although they never came
}

// add notes that the message numbered seq has come. Zero is nobody's number and is ignored.
func (t *track) add(seq uint64) {
	n := len(t.Runs)
	switch {
	case seq == 0:
	case n > 0 && seq == t.Runs[n-1].Hi+1:
		t.Runs[n-1].Hi = seq
	case n == 0 || seq > t.Runs[n-1].Hi:
		t.Runs = append(t.Runs, run{seq, seq})
	default:
		t.late(seq)
	}
	if len(t.Runs) > maxRuns {
		t.GivenUp += t.Runs[1].Lo - t.Runs[0].Hi - 1
		t.Runs[1].Lo = t.Runs[0].Lo
		t.Runs = slices.Delete(t.Runs, 0, 1)
	}
}

// late notes a number that is not the highest: one that was received before, or one that fills a gap.
func (t *track) late(seq uint64) {
	// i is the first run that ends at or behind seq; there is one, or add had not come here.
	i, _ := slices.BinarySearchFunc(t.Runs, seq, func(r run, seq uint64) int {
		if r.Hi < seq {
			return -1
		}
		return 1
	})
	if t.Runs[i].Lo <= seq {
		t.Duplicated++
		return
	}
	t.Reordered++
	left := i > 0 && t.Runs[i-1].Hi+1 == seq
	right := t.Runs[i].Lo == seq+1
	switch {
	case left && right:
		t.Runs[i-1].Hi = t.Runs[i].Hi
		t.Runs = slices.Delete(t.Runs, i, i+1)
	case left:
		t.Runs[i-1].Hi = seq
	case right:
		t.Runs[i].Lo = seq
	default:
		t.Runs = slices.Insert(t.Runs, i, run{seq, seq})
	}
}

// received returns how many different numbers have come.
func (t *track) received() uint64 {
	var n uint64
	for _, r := range t.Runs {
		n += r.Hi - r.Lo + 1
	}
	return n - t.GivenUp
}

// page is what one entity has received from all senders. It outlives the entity, which may be stopped and made again.
type page struct {
	mu     sync.Mutex
	tracks map[uint32]*track
	count  uint64
}

func (p *page) add(sender uint32, seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tracks[sender]
	if t == nil {
		t = &track{}
		p.tracks[sender] = t
	}
	t.add(seq)
	p.count++
}

func (p *page) total() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// ledger is all pages of one process.
type ledger struct {
	mu    sync.Mutex
	pages map[string]*page
}

func newLedger() *ledger { return &ledger{pages: map[string]*page{}} }

// page returns the page of an entity, which it makes when there is none.
func (l *ledger) page(id string) *page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[id]
	if p == nil {
		p = &page{tracks: map[uint32]*track{}}
		l.pages[id] = p
	}
	return p
}

// total returns how many messages have come, duplicates included.
func (l *ledger) total() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n uint64
	for _, p := range l.pages {
		n += p.total()
	}
	return n
}

// report is a copy of a ledger: entity, then sender.
type report map[string]map[uint32]track

func (l *ledger) report() report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := make(report, len(l.pages))
	for id, p := range l.pages {
		p.mu.Lock()
		tracks := make(map[uint32]track, len(p.tracks))
		for sender, t := range p.tracks {
			tracks[sender] = track{slices.Clone(t.Runs), t.Reordered, t.Duplicated, t.GivenUp}
		}
		p.mu.Unlock()
		r[id] = tracks
	}
	return r
}

// sentCounts is how many messages each sender sent to each entity: sender, then entity.
type sentCounts map[uint32]map[string]uint64

// tally is what a comparison of sent and received messages shows. Foreign ones came and were never sent.
type tally struct {
	Sent, Delivered, Lost, Reordered, Duplicated, Foreign uint64
}

// compare holds what was sent against what all nodes' entities received. A message that two nodes received counts as
// duplicated.
func compare(sent sentCounts, reports ...report) tally {
	var t tally
	merged := map[string]map[uint32][]run{}
	var givenUp uint64
	for _, r := range reports {
		for id, tracks := range r {
			if merged[id] == nil {
				merged[id] = map[uint32][]run{}
			}
			for sender, got := range tracks {
				merged[id][sender] = append(merged[id][sender], got.Runs...)
				t.Reordered += got.Reordered
				t.Duplicated += got.Duplicated
				givenUp += got.GivenUp
			}
		}
	}
	for sender, entities := range sent {
		for id, n := range entities {
			t.Sent += n
			t.match(merged[id][sender], n)
			delete(merged[id], sender)
		}
	}
	for _, senders := range merged { // what is left has no sender
		for _, runs := range senders {
			t.match(runs, 0)
		}
	}
	t.Delivered -= min(givenUp, t.Delivered)
	t.Lost += givenUp
	return t
}

// match holds the runs of one pair, of all nodes, against the n messages that were sent.
func (t *tally) match(runs []run, n uint64) {
	slices.SortFunc(runs, func(a, b run) int {
		if a.Lo < b.Lo {
			return -1
		}
		return 1
	})
	var all, different, foreign, next uint64 = 0, 0, 0, 1 // next is the lowest number not counted yet
	for _, r := range runs {
		all += r.Hi - r.Lo + 1
		lo := max(r.Lo, next)
		if lo > r.Hi {
			continue
		}
		different += r.Hi - lo + 1
		if r.Hi > n {
			foreign += r.Hi - max(lo, n+1) + 1
		}
		next = r.Hi + 1
	}
	t.Duplicated += all - different
	t.Foreign += foreign
	t.Delivered += different - foreign
	t.Lost += n - (different - foreign)
}
