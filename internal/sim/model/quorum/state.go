// The state of a run: a flat value, what a history says of sets, and which states are the same but for names.

package quorum

import (
	"math/bits"
	"slices"
	"strings"
)

const (
	replicas  = 6
	owners    = 4 // of a shard
	positions = 5 // of a history
	shards    = 2
)

// set is a set of replicas.
type set uint8

func only(i int) set         { return 1 << i }
func (s set) has(i int) bool { return s>>i&1 == 1 }

// majority reports whether those that said yes are a majority of s, which none is of an empty set.
func (s set) majority(yes set) bool {
	return 2*bits.OnesCount8(uint8(s&yes)) > bits.OnesCount8(uint8(s))
}

// value is what stands at a position: 0 for nothing, the fence of the owner whose batch it is, or a change of set:
// which, and by which owner. An owner makes at most one value for a position.
type value uint8

const change value = 1 << 7

func (v value) isChange() bool { return v&change != 0 }
func (v value) maker() uint8   { return uint8(v >> 4 & 7) }

func changeTo(number int, fence uint8) value { return change | value(fence)<<4 | value(number) }

type history [positions]value

// upTo returns the first n positions.
func (h history) upTo(n uint8) history {
	for p := n; p < positions; p++ {
		h[p] = 0
	}
	return h
}

// replica is what one disk holds of a shard, and the promise that its process goes by, which is the one on disk unless
// that rule is off. The last entry lies beside the state, where all before it are for good.
type replica struct {
	promise, disk uint8
	fence, number uint8 // of the last accepted entry
	h             history
}

const (
	claims   = iota // it has asked everybody, and collects answers
	rewrites        // writes the last entry again under its own fence
	serves
	writes // a batch or a change of set is under way
	reads  // asks whether its fence still holds
)

// owner is what an owner of a shard knows. What it has sent follows from that: its claim, and each beginning of its
// history from first on. Messages stay on their way for ever: each comes at any later step, again, or never.
type owner struct {
	phase  uint8
	got    set   // the replicas that have answered the claim, the write or the read under way
	fence  uint8 // while it claims: that of the newest history heard
	n      uint8 // positions of h
	first  uint8
	mine   uint8 // batches of its own that it has begun
	sets   uint8 // changes of set
	before uint8 // positions that anybody got an answer of when its read began
	h      history
}

// shard is one shard; told is what any owner learnt to be decided, or could have shown to a reader, and by is the fence
// of the first.
type shard struct {
	r    [replicas]replica
	o    [owners]owner
	told history
	by   [positions]uint8
}

// state is all there is.
type state struct {
	s               [shards]shard
	gone            set // ids with a lost or wiped disk
	wiped           set // of these the wiped ones
	crashes, losses uint8
}

// compiled is a Config in numbers.
type compiled struct {
	*Config
	n       int // replicas
	init    set
	sets    []set // all there may be: changes name them by their place
	shards  []bounds
	classes [][]int // replicas that all sets treat alike
}

// bounds is a Shard in numbers.
type bounds struct {
	owners  int
	batches [owners]uint8
	wishes  [owners][]int
	tables  [owners][]set
	done    bool
}

// keeps reports whether a rule is on.
func (c *compiled) keeps(r Rule) bool { return c.Broken&r == 0 }

// setOf reads a set: a digit for each replica.
func setOf(text string) (s set) {
	for _, d := range text {
		s |= only(int(d - '1'))
	}
	return s
}

func (s set) String() string {
	text := "{"
	for i := range replicas {
		if s.has(i) {
			text += string(rune('1' + i))
		}
	}
	return text + "}"
}

// compile reads a Config.
func compile(c *Config) *compiled {
	k := &compiled{Config: c, init: setOf("123")}
	if c.Set != "" {
		k.init = setOf(c.Set)
	}
	k.known(k.init)
	for _, s := range c.Shards {
		k.shards = append(k.shards, k.bounds(s))
	}
	all := set(0)
	for _, s := range k.sets {
		all |= s
	}
	k.n = bits.Len8(uint8(all))
	k.classify()
	if !k.keeps(foundedOnce) {
		k.init = 0
	}
	return k
}

// known returns the place of a set.
func (c *compiled) known(s set) int {
	if at := slices.Index(c.sets, s); at >= 0 {
		return at
	}
	c.sets = append(c.sets, s)
	return len(c.sets) - 1
}

// bounds reads the bounds of a shard.
func (c *compiled) bounds(s Shard) bounds {
	b := bounds{owners: s.Owners, done: s.Done, batches: [owners]uint8{1, 1, 1, 1}}
	for x, text := range split(s.Batches, "/") {
		b.batches[x] = text[0] - '0'
	}
	for x, list := range split(s.Wishes, "/") {
		for _, text := range split(list, ",") {
			b.wishes[x] = append(b.wishes[x], c.known(setOf(text)))
		}
	}
	for x, list := range split(s.Tables, "/") {
		for _, text := range split(list, ",") {
			b.tables[x] = append(b.tables[x], c.sets[c.known(setOf(text))])
		}
	}
	return b
}

// split is strings.Split, but for an empty text, which is an empty list.
func split(text, by string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, by)
}

// classify finds the replicas that no set tells apart: two states that differ only in their names are one.
func (c *compiled) classify() {
	seen := map[string]int{}
	for i := range c.n {
		sign := ""
		for _, s := range c.sets {
			sign += string(rune('0' + s>>i&1))
		}
		at, ok := seen[sign]
		if !ok {
			at = len(c.classes)
			seen[sign] = at
			c.classes = append(c.classes, nil)
		}
		c.classes[at] = append(c.classes[at], i)
	}
}

// inForce returns which set the first n positions decide, and which one the last of them proposes; 0 for none.
func (c *compiled) inForce(h *history, n uint8) (decided, proposed set) {
	decided = c.init
	for p := range n {
		if !h[p].isChange() {
			continue
		}
		to := c.sets[h[p]&15]
		if p+1 < n || !c.keeps(proposedIsNone) { // broken: what anybody has heard of is in force
			decided = to
		} else {
			proposed = to
		}
	}
	return decided, proposed
}

// now returns the set that is in force when all positions are decided.
func (c *compiled) now(h *history, n uint8) set {
	decided, proposed := c.inForce(h, n)
	if proposed != 0 {
		return proposed
	}
	return decided
}

// changes returns how many changes of set there are.
func changes(h *history, n uint8) (all int) {
	for p := range n {
		if h[p].isChange() {
			all++
		}
	}
	return all
}

// key returns all that a state knows of one replica.
func (s *state) key(i int) (k [shards]uint64) {
	for n := range s.s {
		r := &s.s[n].r[i]
		w := uint64(r.promise)<<9 | uint64(r.disk)<<6 | uint64(r.fence)<<3 | uint64(r.number)
		for _, v := range r.h {
			w = w<<8 | uint64(v)
		}
		for x := range s.s[n].o {
			w = w<<1 | uint64(s.s[n].o[x].got>>i&1)
		}
		k[n] = w<<2 | uint64(s.gone>>i&1)<<1 | uint64(s.wiped>>i&1)
	}
	return k
}

// swap exchanges two replicas.
func (s *state) swap(i, j int) {
	for n := range s.s {
		h := &s.s[n]
		h.r[i], h.r[j] = h.r[j], h.r[i]
		for x := range h.o {
			h.o[x].got = h.o[x].got.swap(i, j)
		}
	}
	s.gone, s.wiped = s.gone.swap(i, j), s.wiped.swap(i, j)
}

func (s set) swap(i, j int) set {
	if s.has(i) != s.has(j) {
		s ^= only(i) | only(j)
	}
	return s
}

// settle brings the replicas of each class into an order, so that states that differ in their names are equal. names
// are changed alike, unless they are nil.
func (c *compiled) settle(s *state, names []int) {
	for _, class := range c.classes {
		for a := 1; a < len(class); a++ {
			for b := a; b > 0 && less(s.key(class[b]), s.key(class[b-1])); b-- {
				i, j := class[b], class[b-1]
				s.swap(i, j)
				if names != nil {
					names[i], names[j] = names[j], names[i]
				}
			}
		}
	}
}

func less(a, b [shards]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// encode writes a state as bytes.
func (c *compiled) encode(b []byte, s *state) []byte {
	b = append(b, byte(s.gone), byte(s.wiped), s.crashes, s.losses)
	for n := range c.shards {
		h := &s.s[n]
		for i := range c.n {
			r := &h.r[i]
			b = appendHistory(append(b, r.promise, r.disk, r.fence, r.number), &r.h)
		}
		for x := range c.shards[n].owners {
			o := &h.o[x]
			b = append(b, o.phase, byte(o.got), o.fence, o.n, o.first, o.mine, o.sets, o.before)
			b = appendHistory(b, &o.h)
		}
		b = append(appendHistory(b, &h.told), h.by[:]...)
	}
	return b
}

func appendHistory(b []byte, h *history) []byte {
	for _, v := range h {
		b = append(b, byte(v))
	}
	return b
}
