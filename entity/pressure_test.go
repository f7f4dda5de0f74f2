// Tests of messages of senders that wait for room: which sender hears what, when, and how much is taken.

package entity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// presser is a Sender that passes on what it hears, as a connection does: news once.
type presser struct {
	t         require.TestingT
	full      map[uint64]bool
	allowance int
	gone      bool
	limit     int
}

func (p *presser) Full(t route.TypeID, n route.ShardID, hash uint64, limit int) int {
	require.Equal(p.t, route.TypeOf("book"), t)
	require.EqualValues(p.t, 7, n)
	p.limit = limit
	if p.full[hash] {
		return 0
	}
	p.full[hash] = true
	return p.allowance
}

func (p *presser) Room(t route.TypeID, n route.ShardID, hash uint64) {
	require.Equal(p.t, route.TypeOf("book"), t)
	require.EqualValues(p.t, 7, n)
	require.True(p.t, p.full[hash], "room for what was not full")
	delete(p.full, hash)
}

func (p *presser) Gone() bool { return p.gone }

func newPresser(t require.TestingT, allowance int) *presser {
	return &presser{t: t, full: map[uint64]bool{}, allowance: allowance}
}

// press delivers a message of so many counted bytes of a sender that waits.
func (r *rig) press(id string, size int, from *presser) route.Reason {
	m := Message{ID: []byte(id), Payload: make([]byte, size-RecordOverhead), Sender: from}
	return r.Deliver(r.f.now, &m)
}

// A message of a sender that waits is taken into a full mailbox, and the sender hears that; Room comes at half of the
// bound; all that is refused is what a sender cannot have sent before it heard.
func TestSenderIsToldOfAFullMailbox(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	a, b := newPresser(t, 512), newPresser(t, 256)
	hash := HashID([]byte("a"))
	for range 4 {
		require.Equal(t, route.OK, r.press("a", 256, a))
	}
	require.Empty(t, a.full, "exactly full, and nothing over it")
	require.Equal(t, route.OK, r.press("a", 256, a))
	require.True(t, a.full[hash])
	require.Equal(t, MinMailboxBytes, a.limit)
	require.Equal(t, []int{1, 1}, []int{int(r.Stats().Filled), r.Stats().Full})
	require.Equal(t, route.MailboxFull, r.deliver("a", "", nil, 0), "who does not wait is refused as ever")
	parked := Message{ID: []byte("a"), Payload: make([]byte, 4096), Sender: a, Parked: true}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &parked), "what was parked is not counted")
	require.Equal(t, route.OK, r.press("a", 256, a), "on the way already")
	require.Equal(t, route.MailboxFull, r.press("a", 256, a), "that it may not have sent")
	require.Equal(t, route.OK, r.press("a", 256, b))
	require.True(t, b.full[hash])
	require.Equal(t, route.MailboxFull, r.press("a", 256, b))
	require.Equal(t, route.OK, r.press("b", 256, b), "another entity")
	require.Equal(t, uint64(3), r.Stats().Refused[route.MailboxFull])
	r.runAll()
	require.Empty(t, a.full)
	require.Empty(t, b.full)
	require.Zero(t, r.Stats().QueuedBytes)
	require.Equal(t, []int{1, 0}, []int{int(r.Stats().Filled), r.Stats().Full}, "one mailbox, however many were told")
	for range 6 {
		require.Equal(t, route.OK, r.press("a", 256, a), "as before")
	}
	r.Abandon()
	require.Empty(t, a.full, "who waits for what is dropped waits no more")
}

// own is the entity's own node as a Sender.
type own struct{ rings int }

func (*own) Full(route.TypeID, route.ShardID, uint64, int) int { panic("nothing of it is under way") }

func (o *own) Room(route.TypeID, route.ShardID, uint64) { o.rings++ }

func (*own) Gone() bool { return false }

// A message of a sender on the entity's own node that waits is refused by a full mailbox, and takes no room that others
// wait for: it goes on when they do, with one ring for all of its node (SHD-4).
func TestSenderHereWaitsWithTheOthers(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	here, there := &own{}, newPresser(t, 1000)
	press := func(size int) route.Reason {
		return r.Deliver(r.f.now, &Message{ID: []byte("a"), Payload: make([]byte, size-RecordOverhead), Sender: here,
			Here: true})
	}
	require.Equal(t, route.OK, press(3*MinMailboxBytes), "one message is taken in any case")
	r.runAll()
	require.Equal(t, route.OK, press(MinMailboxBytes/2))
	require.Equal(t, route.OK, press(MinMailboxBytes/2))
	e := r.Ready()
	require.True(t, e.Begin(r.f.now), "both are one batch")
	for range 3 {
		require.Equal(t, route.MailboxFull, press(RecordOverhead))
	}
	require.Equal(t, route.OK, r.press("a", MinMailboxBytes/2, there), "what is under way is taken")
	require.Equal(t, route.OK, r.press("a", 100, there))
	require.Equal(t, route.MailboxFull, press(RecordOverhead))
	require.Len(t, e.act.press.told, 2)
	require.Zero(t, here.rings)
	for e.Work() {
		continue
	}
	require.True(t, e.End(r.f.now), "more waits: of those that were under way")
	require.Zero(t, here.rings, "more than half")
	require.Equal(t, route.MailboxFull, press(RecordOverhead), "there is room, but others wait for it")
	require.Equal(t, 1, r.Stats().Full)
	require.True(t, e.Begin(r.f.now))
	for e.Work() {
		continue
	}
	require.False(t, e.End(r.f.now))
	require.Equal(t, 1, here.rings)
	require.Empty(t, there.full)
	require.Equal(t, route.OK, press(RecordOverhead))
	parked := Message{ID: []byte("a"), Payload: make([]byte, 3*MinMailboxBytes), Sender: there, Parked: true}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &parked))
	require.Equal(t, route.MailboxFull, press(RecordOverhead))
	r.Abandon()
	require.Equal(t, 2, here.rings, "who waits for what is dropped waits no more")
	require.Zero(t, r.Stats().Full)
}

// One large message into an empty mailbox is over the bound: its sender hears that.
func TestLargestMessageFillsTheMailbox(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	a := newPresser(t, 100)
	require.Equal(t, route.OK, r.press("a", 3*MinMailboxBytes, a))
	require.Len(t, a.full, 1)
	r.runAll()
	require.Empty(t, a.full)
}

// The messages of 64 senders at once count for more room, however many connections come and go meanwhile.
func TestPressureIsBounded(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	require.Equal(t, route.OK, r.press("a", MinMailboxBytes, newPresser(t, 256)))
	last := []*presser{}
	for range 10 * mostPressed {
		p := newPresser(t, 256)
		r.press("a", 256, p)
		require.Len(t, p.full, 1, "told in any case")
		p.gone = true
		last = append(last, p)
	}
	require.Equal(t, MinMailboxBytes+mostPressed*256, r.Stats().QueuedBytes)
	require.LessOrEqual(t, len(r.table.dense[0].act.press.told), mostPressed+1)
	r.runAll()
	require.Empty(t, last[len(last)-1].full)
	require.Equal(t, route.OK, r.press("a", 256, newPresser(t, 256)))
}

// Whatever is delivered, run, stopped and given up: a sender that stops when it hears Full is never refused for a full
// mailbox; it hears of room when the mailbox holds at most half; what waits is bounded (SHD-4, ACC-5).
func TestPressureLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const allowance = 600
		r := newRig(t, Blocking, func(typ *Type) {
			typ.MailboxBytes = MinMailboxBytes
			typ.Restart = RestartStop
		})
		r.f.receive = func(c *Context, payload []byte) error {
			if rapid.IntRange(0, 9).Draw(t, "panics") == 0 {
				panic("handler")
			}
			return nil
		}
		senders := []*presser{newPresser(t, allowance), newPresser(t, allowance), newPresser(t, allowance)}
		after := map[string]int{} // bytes sent after Full, by sender and entity
		var runs []*Entity
		t.Repeat(map[string]func(*rapid.T){
			"tell": func(t *rapid.T) {
				n, id := rapid.IntRange(0, 2).Draw(t, "sender"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id")
				size := rapid.IntRange(RecordOverhead, 400).Draw(t, "size")
				key := fmt.Sprint(n, id)
				if senders[n].full[HashID([]byte(id))] {
					if after[key]+size > allowance-400 { // the message that made it full counts too
						return
					}
					after[key] += size
				} else {
					after[key] = 0
				}
				require.Equal(t, route.OK, r.press(id, size, senders[n]))
			},
			"other": func(t *rapid.T) {
				r.deliver("a", strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "size")), nil, 0)
			},
			"begin": func(*rapid.T) {
				if e := r.Ready(); e != nil && e.Begin(r.f.now) {
					runs = append(runs, e)
				}
			},
			"run": func(t *rapid.T) {
				if len(runs) == 0 {
					return
				}
				e := runs[0]
				runs = runs[1:]
				for e.Work() {
					continue
				}
				if e.End(r.f.now) && e.Begin(r.f.now) {
					runs = append(runs, e)
				}
			},
			"": func(t *rapid.T) {
				full := 0
				for _, e := range r.table.dense {
					waits := 0
					if e.act != nil {
						waits = e.act.bytes
						if e.act.pressed() {
							full++
						}
					}
					for _, s := range senders {
						if s.full[HashID([]byte(e.id))] {
							require.Greater(t, waits, MinMailboxBytes/2, "somebody waits for an entity that has room")
						}
					}
					require.LessOrEqual(t, waits, MinMailboxBytes+3*allowance)
				}
				require.Equal(t, full, r.Stats().Full)
			},
		})
	})
}
