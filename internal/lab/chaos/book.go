// The book: reads the journals of all processes as they grow.

package chaos

import (
	"sync"
	"time"
)

// volume is what one process writes down.
type volume struct {
	life       *life
	sent       *journal
	handled    *journal
	moves      *journal
	sentTo     int // what was read
	handledTo  int
	sentLeft   []int // of that, what was not complete
	handleLeft []int
}

// answers is what came back to one node from one entity.
type answers struct {
	at     []time.Duration // when each came
	latest time.Duration   // when the latest ask began that was answered
}

// journalSet is all journals of a run.
type journalSet struct {
	dir  string
	load Load

	mu      sync.Mutex
	volumes map[uint32]*volume
	rule    *exclusive
	series  [][]answers // by slot and target
	held    []handling  // not judged yet: others of the same time may still come
}

func newBook(dir string, nodes int, l Load) *journalSet {
	b := &journalSet{dir: dir, load: l, volumes: map[uint32]*volume{}, rule: newExclusive(),
		series: make([][]answers, nodes)}
	for i := range b.series {
		b.series[i] = make([]answers, l.targets())
	}
	return b
}

// open begins to read the journals of a process.
func (b *journalSet) open(l *life) (err error) {
	v := &volume{life: l}
	out, in := journals(b.dir, l.sender)
	if v.sent, err = openJournal(out); err != nil {
		return err
	}
	if v.handled, err = openJournal(in); err != nil {
		return err
	}
	if v.moves, err = openJournal(movesJournal(b.dir, l.sender)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.volumes[l.sender] = v
	return nil
}

// close unmaps the journals.
func (b *journalSet) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.volumes {
		_ = v.sent.close()
		_ = v.handled.close()
		_ = v.moves.close()
	}
	b.volumes = map[uint32]*volume{}
}

// holdBack is how long handlings wait to be judged, so that those of all processes stand in the order of time.
const holdBack = time.Second

// read takes what is new and returns a line for each handling that breaks the rule. Of what began after now less
// holdBack nothing is judged yet, unless all is.
func (b *journalSet) read(now time.Duration, all bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.volumes {
		b.readSent(v)
		b.held = append(b.held, v.readHandled()...)
	}
	judge := b.held[:0:0]
	rest := b.held[:0]
	for _, h := range b.held {
		if all || h.from < now-holdBack {
			judge = append(judge, h)
		} else {
			rest = append(rest, h)
		}
	}
	b.held = rest
	return b.rule.add(judge)
}

func (b *journalSet) readSent(v *volume) {
	todo := v.sentLeft
	v.sentLeft = nil
	for ; v.sentTo < v.sent.begun(); v.sentTo++ {
		todo = append(todo, v.sentTo)
	}
	gone := !v.life.running()
	for _, n := range todo {
		s := sentOf(v.sent.get(n))
		switch s.fate {
		case fateAnswered:
			a := &b.series[v.life.slot][s.target]
			a.at = append(a.at, s.until)
			a.latest = max(a.latest, s.from)
		case fateNone, fateAsked:
			if !gone {
				v.sentLeft = append(v.sentLeft, n)
			}
		}
	}
}

// readHandled returns the handlings that are complete now. Those that the end of the process cut short are.
func (v *volume) readHandled() (all []handling) {
	gone := !v.life.running() // looked at first: what it wrote is there then
	todo := v.handleLeft
	v.handleLeft = nil
	for ; v.handledTo < v.handled.begun(); v.handledTo++ {
		todo = append(todo, v.handledTo)
	}
	for _, n := range todo {
		h := handledOf(v.handled.get(n))
		switch {
		case h.step >= stepDone:
		case !gone:
			v.handleLeft = append(v.handleLeft, n)
			continue
		case h.step == stepNone:
			continue
		default:
			v.life.mu.Lock()
			h.until = v.life.end
			v.life.mu.Unlock()
		}
		all = append(all, handling{h, v.life.sender})
	}
	return all
}

// answered reports whether every node of these slots has had an answer from every entity to an ask that it began
// after t.
func (b *journalSet) answered(slots []int, t time.Duration) (waits string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := 0
	for _, s := range slots {
		for target := range b.series[s] {
			if b.series[s][target].latest <= t {
				if missing++; missing == 1 {
					waits = name(s) + " has no answer from " + b.load.nameOf(target)
				}
			}
		}
	}
	return waits, missing == 0
}

// silence is the longest time in which a node had no answer from some entity.
type silence struct {
	slot, target int
	began, gap   time.Duration
}

// silences returns the longest one of each node.
func (b *journalSet) silences(from, until time.Duration) []silence {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]silence, len(b.series))
	for s := range b.series {
		all[s].slot = s
		for target := range b.series[s] {
			began, gap := longest(b.series[s][target].at, from, until)
			if gap > all[s].gap {
				all[s] = silence{s, target, began, gap}
			}
		}
	}
	return all
}

// pausedFrom notes that a process stands still from now on; the result ends that.
func (b *journalSet) pausedFrom(process uint32, at time.Duration) (over func(until time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.rule.pauses)
	b.rule.pauses = append(b.rule.pauses, pause{process: process, from: at})
	return func(until time.Duration) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.rule.pauses[n].until = until
	}
}

// total makes the account of the whole run.
func (b *journalSet) total(rounds []past) (t sums) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var missing []message
	reported := map[groupKey]int{}
	reports := 0
	for sender, v := range b.volumes {
		for n := range v.sent.begun() {
			s := sentOf(v.sent.get(n))
			accepted, failed := s.accepted(), s.fate == fateFailed
			switch {
			case s.fate == fateReported:
				reported[groupKey{sender, s.typ, s.shard, s.ask}] += int(s.count)
				reports += int(s.count)
				continue
			case !accepted && !failed:
				continue
			}
			t.Accepted++
			if r := within(rounds, s.from); r >= 0 {
				rounds[r].accepted++
			}
			switch {
			case b.rule.handled(sender, uint64(n)):
				t.Handled++
			case failed:
				t.Reported++
			default:
				missing = append(missing, b.message(rounds, v, &s))
			}
		}
	}
	lost, taken := matchReported(missing, reported)
	t.Reported += taken
	t.Over = reports - taken
	for _, m := range lost {
		t.lose(rounds, &m)
	}
	return t
}

// lose counts a message that was not reported.
func (t *sums) lose(rounds []past, m *message) {
	t.Lost++
	if m.cause == "" {
		t.Unexplained++
	} else {
		if t.By == nil {
			t.By = map[cause]int{}
		}
		t.By[m.cause]++
	}
	r := m.why
	if r < 0 {
		r = within(rounds, m.at)
	}
	if r >= 0 {
		rounds[r].lost++
		if m.cause == "" {
			rounds[r].unexplains++
		}
	}
}

// within returns the round in which a moment lies, -1 when it is in none.
func within(rounds []past, at time.Duration) int {
	for i := range rounds {
		if at >= rounds[i].from && (rounds[i].until == 0 || at < rounds[i].until) {
			return i
		}
	}
	return -1
}

// message describes a message that is missing.
func (b *journalSet) message(rounds []past, v *volume, s *sent) message {
	var owners []int
	processes := b.rule.owners(s.target, s.from)
	for _, p := range processes {
		if o := b.volumes[p]; o != nil {
			owners = append(owners, o.life.slot)
		}
	}
	typ, _ := b.load.typeOf(int(s.target))
	m := message{sender: v.life.sender, target: s.target, typ: uint8(typ), at: s.from, owners: processes,
		why: explain(rounds, v.life.slot, owners, s.from)}
	if m.why >= 0 {
		m.cause = b.cause(v.life, &m)
	}
	if int(s.target) < len(v.life.shards) {
		m.shard = v.life.shards[s.target]
	}
	return m
}

// cause returns what took a message that a fault explains: the end of a process, or only the way.
func (b *journalSet) cause(sender *life, m *message) cause {
	if sender.endedAfter(m.at) {
		return senderEnded
	}
	for _, p := range m.owners {
		if o := b.volumes[p]; o != nil && o.life.endedAfter(m.at-marginBefore) {
			return receiverEnded
		}
	}
	return onTheWay
}

// moves returns what all processes have noted of moves since a moment.
func (b *journalSet) moves(since time.Duration) (all []moveNote) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.volumes {
		for i := v.moves.begun() - 1; i >= 0; i-- {
			r := v.moves.get(i)
			if r[0] == 0 {
				continue // it is being written
			}
			n := moveNoteOf(r)
			if n.at < since-noteLate {
				break
			}
			if n.at >= since {
				all = append(all, n)
			}
		}
	}
	return all
}

// noteLate is how much later than another one a note may be that stands before it.
const noteLate = 10 * time.Second

// home returns the slot in which an entity was handled last, -1 where it is not known or that process has ended.
func (b *journalSet) home(target int, now time.Duration) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.rule.owners(uint16(target), now) {
		if v := b.volumes[p]; v != nil && v.life.running() {
			return v.life.slot
		}
	}
	return -1
}

// busy reports whether a handler of an entity of a shard of the first type is in a call at a process.
func (b *journalSet) busy(l *life, shard uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l == nil || b.volumes[l.sender] == nil {
		return false
	}
	j := b.volumes[l.sender].handled
	for i, n := j.begun()-1, 0; i >= 0 && n < lookBack; i, n = i-1, n+1 {
		h := handledOf(j.get(i))
		if typ, _ := b.load.typeOf(int(h.target)); h.step == stepBegun && typ == 0 && l.shards[h.target] == shard {
			return true
		}
	}
	return false
}

// lookBack is how many calls may have begun since one that has not ended; so many begin in some seconds.
const lookBack = 4096
