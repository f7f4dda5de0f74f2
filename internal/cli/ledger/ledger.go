// Package ledger notes which numbered messages the entities of a process have received, so that lost, reordered and
// duplicated ones show when the ledgers of all processes are held against what was sent.
package ledger

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// MaxRuns bounds the runs kept per pair of entity and sender. Beyond it the lowest gap is given up: its messages count
// as lost for good, and as duplicates if they should still come.
const MaxRuns = 1024

// Run is an unbroken range of received numbers, both ends included, and when the first and the last of them came by the
// clock of the ledger. Those of two processes are compared by it: a shard that moves has its messages on both.
type Run struct {
	Lo    uint64        `json:"lo"`
	Hi    uint64        `json:"hi"`
	First time.Duration `json:"first,omitempty"`
	Last  time.Duration `json:"last,omitempty"`
}

// Track is what one entity has received from one sender. Numbers begin at 1 and grow by 1.
type Track struct {
	Runs       []Run  `json:"runs"`       // ascending, with a gap between any two
	Reordered  uint64 `json:"reordered"`  // came after a higher one
	Duplicated uint64 `json:"duplicated"` // came again
	GivenUp    uint64 `json:"given_up"`   // stand in Runs although they never came
}

// add notes that the message numbered seq has come at a time. Zero is nobody's number and is ignored.
func (t *Track) add(seq uint64, at time.Duration) {
	n := len(t.Runs)
	switch {
	case seq == 0:
	case n > 0 && seq == t.Runs[n-1].Hi+1:
		t.Runs[n-1].Hi, t.Runs[n-1].Last = seq, at
	case n == 0 || seq > t.Runs[n-1].Hi:
		t.Runs = append(t.Runs, Run{seq, seq, at, at})
	default:
		t.late(seq, at)
	}
	if len(t.Runs) > MaxRuns {
		t.GivenUp += t.Runs[1].Lo - t.Runs[0].Hi - 1
		t.Runs[1].Lo, t.Runs[1].First = t.Runs[0].Lo, t.Runs[0].First
		t.Runs = slices.Delete(t.Runs, 0, 1)
	}
}

// late notes a number that is not the highest: one that was received before, or one that fills a gap.
func (t *Track) late(seq uint64, at time.Duration) {
	// i is the first run that ends at or behind seq; there is one, or add had not come here.
	i, _ := slices.BinarySearchFunc(t.Runs, seq, func(r Run, seq uint64) int {
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
		t.Runs[i-1].Hi, t.Runs[i-1].Last = t.Runs[i].Hi, t.Runs[i].Last
		t.Runs = slices.Delete(t.Runs, i, i+1)
	case left:
		t.Runs[i-1].Hi = seq
	case right:
		t.Runs[i].Lo = seq
	default:
		t.Runs = slices.Insert(t.Runs, i, Run{seq, seq, at, at})
	}
}

// received returns how many different numbers have come.
func (t *Track) received() uint64 {
	var n uint64
	for _, r := range t.Runs {
		n += r.Hi - r.Lo + 1
	}
	return n - t.GivenUp
}

// Page is what one entity has received from all senders. It outlives the entity, which may be stopped and made again.
type Page struct {
	clock  func() time.Duration
	mu     sync.Mutex
	tracks map[uint32]*Track
	count  uint64
}

// Add notes that the message numbered seq of a sender has come; numbers begin at 1.
func (p *Page) Add(sender uint32, seq uint64) {
	at := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tracks[sender]
	if t == nil {
		t = &Track{}
		p.tracks[sender] = t
	}
	t.add(seq, at)
	p.count++
}

// Total returns how many messages have come, duplicates included.
func (p *Page) Total() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Ledger is all pages of one process.
type Ledger struct {
	clock func() time.Duration
	mu    sync.Mutex
	pages map[string]*Page
}

// New returns an empty ledger. The clock is one that all processes share, such as cli.Clock.
func New(clock func() time.Duration) *Ledger { return &Ledger{clock: clock, pages: map[string]*Page{}} }

// Page returns the page of an entity, which it makes when there is none.
func (l *Ledger) Page(id string) *Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[id]
	if p == nil {
		p = &Page{clock: l.clock, tracks: map[uint32]*Track{}}
		l.pages[id] = p
	}
	return p
}

// Total returns how many messages have come, duplicates included.
func (l *Ledger) Total() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n uint64
	for _, p := range l.pages {
		n += p.Total()
	}
	return n
}

// Report is a copy of a ledger: entity, then sender.
type Report map[string]map[uint32]Track

// Report copies the ledger.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := make(Report, len(l.pages))
	for id, p := range l.pages {
		p.mu.Lock()
		tracks := make(map[uint32]Track, len(p.tracks))
		for sender, t := range p.tracks {
			tracks[sender] = Track{slices.Clone(t.Runs), t.Reordered, t.Duplicated, t.GivenUp}
		}
		p.mu.Unlock()
		r[id] = tracks
	}
	return r
}

// SentCounts is how many messages each sender sent to each entity: sender, then entity.
type SentCounts map[uint32]map[string]uint64

// Tally is what a comparison of sent and received messages shows. Foreign ones came and were never sent.
type Tally struct {
	Sent       uint64 `json:"sent"` // accepted
	Delivered  uint64 `json:"delivered"`
	Lost       uint64 `json:"lost"`
	Reordered  uint64 `json:"reordered"`
	Duplicated uint64 `json:"duplicated"`
	Foreign    uint64 `json:"never_sent"`
}

// Fault is how often something happened that must not be.
type Fault struct {
	N    uint64
	What string
}

// Faults returns what must not be where nobody dies; each may have happened no time.
func (t *Tally) Faults() []Fault {
	return []Fault{{t.Lost, "messages lost"}, {t.Reordered, "reordered"}, {t.Duplicated, "duplicated"},
		{t.Foreign, "received that were never sent"}}
}

// located is a run, and which of the reports it is from.
type located struct {
	Run
	at int
}

// Compare holds what was sent against what all nodes' entities received. A message that two nodes received counts as
// duplicated; numbers that one node received before another had received lower ones count as reordered, one for each
// pair of their runs.
func Compare(sent SentCounts, reports ...Report) Tally {
	var t Tally
	merged := map[string]map[uint32][]located{}
	var givenUp uint64
	for at, r := range reports {
		for id, tracks := range r {
			if merged[id] == nil {
				merged[id] = map[uint32][]located{}
			}
			for sender, got := range tracks {
				for _, x := range got.Runs {
					merged[id][sender] = append(merged[id][sender], located{x, at})
				}
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
func (t *Tally) match(runs []located, n uint64) {
	sort.Slice(runs, func(i, k int) bool { return runs[i].Lo < runs[k].Lo })
	t.overtakes(runs)
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

// overtakes counts runs, sorted by their numbers, that began before one of lower numbers on another node was over.
func (t *Tally) overtakes(runs []located) {
	for i, b := range runs {
		for _, a := range runs[:i] {
			if a.at != b.at && a.Hi < b.Lo && a.Last > b.First {
				t.Reordered++
			}
		}
	}
}
