// Tests of pressure: both ends under a connection that delivers late and breaks, bounds, and what no peer may say.

package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func eachFrame(t require.TestingT, b []byte, f func(kind wire.Kind, body []byte)) {
	for len(b) > 0 {
		n := wire.SizeOf(b)
		require.LessOrEqual(t, n, len(b))
		f(wire.KindOf(b), wire.Body(b[:n]))
		b = b[n:]
	}
}

// Whatever fills and empties in whatever order, whenever it is written and arrives, and however often the connection
// breaks: once all has arrived the sender knows exactly what is full, so nobody waits for an entity that has room, and
// nobody sends to one that is known to be full (FLOW-3).
func TestPressureLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var receiver FullSet
		var sender FullByPeer
		full := map[wire.Full]bool{}
		var line []byte
		arrive := func(frames int) {
			for ; frames > 0 && len(line) > 0; frames-- {
				n := wire.SizeOf(line)
				_, _, err := sender.Take(wire.KindOf(line), wire.Body(line[:n]))
				require.NoError(t, err)
				line = line[n:]
			}
		}
		draw := func() wire.Full {
			if n := rapid.Uint64Range(0, 6).Draw(t, "which"); n > 0 {
				return FullEntity(1, route.ShardID(2+n%2*64), n)
			}
			return FullBudget
		}
		t.Repeat(map[string]func(*rapid.T){
			"full": func(*rapid.T) {
				f := draw()
				require.Equal(t, !full[f], receiver.Full(f, 7), "news are news once")
				full[f] = true
			},
			"room": func(*rapid.T) {
				f := draw()
				receiver.Room(f)
				delete(full, f)
			},
			"write":  func(*rapid.T) { line = receiver.Append(line) },
			"arrive": func(*rapid.T) { arrive(rapid.IntRange(1, 4).Draw(t, "frames")) },
			"break": func(*rapid.T) {
				receiver, line = FullSet{}, nil
				sender.Clear()
				clear(full) // the receiver's entities say it anew when the next message comes
			},
			"": func(*rapid.T) {
				caught := sender
				caught.at = map[wire.Full]int{}
				for f, limit := range sender.at {
					caught.at[f] = limit
				}
				r := receiver
				said := r.clone().Append(nil)
				eachFrame(t, append(append([]byte(nil), line...), said...), func(kind wire.Kind, body []byte) {
					_, _, err := caught.Take(kind, body)
					require.NoError(t, err)
				})
				require.Len(t, caught.at, len(full))
				require.Equal(t, len(full) > 0, caught.some != [64]uint16{})
				require.Equal(t, full[FullBudget], caught.May(63), "no shard in which an entity is full")
				for f := range full {
					_, limit, is := caught.Find(f)
					require.True(t, is)
					require.True(t, caught.May(route.ShardID(f.Shard)))
					require.Equal(t, 7, limit)
				}
			},
		})
	})
}

func (p *FullSet) clone() *FullSet {
	c := &FullSet{at: map[wire.Full]*pressing{}, changed: append([]wire.Full(nil), p.changed...)}
	for f, e := range p.at {
		one := *e
		c.at[f] = &one
	}
	return c
}

// More entities than a connection names: the whole node is full to senders that wait, until one of them has room; the
// tables of both ends stay bounded.
func TestPressureIsBounded(t *testing.T) {
	var receiver FullSet
	var sender FullByPeer
	pass := func() {
		eachFrame(t, receiver.Append(nil), func(kind wire.Kind, body []byte) {
			_, _, err := sender.Take(kind, body)
			require.NoError(t, err)
		})
	}
	for i := range uint64(MaxPressed) {
		require.True(t, receiver.Full(FullEntity(1, 2, i), 5))
	}
	require.True(t, receiver.Full(FullBudget, 5))
	pass()
	_, _, full := sender.Find(FullEntity(1, 2, MaxPressed))
	require.True(t, full, "the budget is")
	receiver.Room(FullBudget)
	pass()
	_, _, full = sender.Find(FullEntity(1, 2, MaxPressed))
	require.False(t, full)

	require.False(t, receiver.Full(FullEntity(1, 2, MaxPressed), 5), "no place for it")
	require.False(t, receiver.Full(FullEntity(1, 2, MaxPressed), 5))
	pass()
	f, limit, full := sender.Find(FullEntity(9, 9, 9))
	require.True(t, full)
	require.Equal(t, FullTable, f)
	require.Equal(t, MaxPressed, limit)

	receiver.Room(FullEntity(1, 2, 0))
	pass()
	_, _, full = sender.Find(FullEntity(9, 9, 9))
	require.False(t, full)
	require.True(t, receiver.Full(FullEntity(1, 2, MaxPressed), 5), "now there is one")
	pass()

	say := func(f wire.Full) error {
		_, _, err := sender.Take(wire.KindFull, wire.AppendFull(nil, f, 1))
		return err
	}
	for i := range uint64(2) { // as many as with both of the node
		require.NoError(t, say(FullEntity(3, 3, i)))
	}
	require.ErrorIs(t, say(FullEntity(3, 3, 3)), ErrBadPressure)
	require.NoError(t, say(FullEntity(3, 3, 1)), "said again")
	require.True(t, sender.Clear())
	require.False(t, sender.Clear())
}

// What is no word of an honest receiver is refused, and changes nothing.
func TestPressureRefusesNonsense(t *testing.T) {
	var p FullByPeer
	for _, f := range []wire.Full{{}, {Reason: uint16(route.QueueFull)}, {Type: 1, Reason: uint16(route.BudgetFull)},
		{Hash: 1, Reason: uint16(route.TableFull)}} {
		_, _, err := p.Take(wire.KindFull, wire.AppendFull(nil, f, 1))
		require.ErrorIs(t, err, ErrBadPressure)
		_, _, err = p.Take(wire.KindRoom, wire.AppendRoom(nil, f))
		require.ErrorIs(t, err, ErrBadPressure)
	}
	_, _, err := p.Take(wire.KindFull, wire.AppendFull(nil, FullBudget, 1<<63))
	require.ErrorIs(t, err, ErrBadPressure)
	body := wire.AppendFull(nil, FullBudget, 1)
	for cut := range body {
		_, _, err = p.Take(wire.KindFull, body[:cut])
		require.ErrorIs(t, err, wire.ErrTruncated)
	}
	require.False(t, p.May(0))
	_, room, err := p.Take(wire.KindRoom, wire.AppendRoom(nil, FullBudget))
	require.NoError(t, err, "of what broke with the connection before")
	require.False(t, room)
}

// FuzzPressed: whatever a peer says, the table stays bounded, and a refused word changes nothing.
func FuzzPressed(f *testing.F) {
	f.Add(true, wire.AppendFull(nil, FullBudget, 1))
	f.Add(false, wire.AppendRoom(nil, FullEntity(1, 2, 3)))
	f.Add(true, []byte{})
	f.Fuzz(func(t *testing.T, full bool, body []byte) {
		var p FullByPeer
		kind := wire.KindRoom
		if full {
			kind = wire.KindFull
		}
		_, _, err := p.Take(kind, body)
		f, _, _ := wire.ParseFull(body)
		require.Equal(t, err == nil && full, len(p.at) > 0)
		require.Equal(t, err == nil && full, p.some != [64]uint16{})
		require.True(t, len(p.at) == 0 || p.May(route.ShardID(f.Shard)))
	})
}

// A connection to a receiver that does not know a flag: it is taken off all envelopes that wait, what is left of a
// batch included, and off nothing else.
func TestLinkUnflag(t *testing.T) {
	l := NewLink(0, 200)
	add := func(flags uint8) {
		e := wire.Envelope{Flags: flags, Type: 1, ID: []byte("id"), Payload: make([]byte, 90)}
		room, err := l.Reserve(wire.SizeEnvelope(2, 90))
		require.NoError(t, err)
		wire.PutEnvelope(room, &e, "id")
	}
	reply := func() {
		room, err := l.Reserve(wire.ReplySize + 4)
		require.NoError(t, err)
		wire.PutReply(room, 8, 9, []byte("text"))
	}
	l.Reconnected(1)
	for range 4 {
		add(wire.FlagWait | wire.FlagParked)
	}
	require.Len(t, l.Take(), 2*124, "two of four go")
	add(wire.FlagWait)
	reply()
	l.Broken()
	l.Unflag(wire.FlagWait)
	l.Reconnected(2)
	var flags []uint8
	for b := l.Take(); b != nil; b = l.Take() {
		for len(b) > 0 {
			n := wire.SizeOf(b)
			flags = append(flags, b[5])
			if wire.KindOf(b) == wire.KindReply {
				status, corr, payload, err := wire.ParseReply(b[:n])
				require.NoError(t, err)
				require.Equal(t, []any{uint16(8), uint64(9), "text"}, []any{status, corr, string(payload)})
			}
			b = b[n:]
		}
		_, err := l.Granted(2, uint64(l.sent))
		require.NoError(t, err)
	}
	require.Equal(t, []uint8{wire.FlagParked, wire.FlagParked, 0, 0}, flags)
}
