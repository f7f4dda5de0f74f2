// Tests of the courier: once and in order under everything a network does, bounded, and silent when all is said (FD-4).

package courier

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func never() bool { return false }

// Whatever the network does, each stream delivers a prefix of what was posted, each message once and in order; when the
// network is good again, all of it; and then nobody sends anything any more.
func TestOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		loss := rapid.Float64Range(0, 0.6).Draw(rt, "loss")
		spread := time.Duration(rapid.IntRange(1, 800).Draw(rt, "spread")) * time.Millisecond
		n := rapid.IntRange(1, 60).Draw(rt, "messages")
		w := newNet(t, seed, 3, Config{})
		w.twice = rapid.Float64Range(0, 0.5).Draw(rt, "twice")
		w.delay = func() time.Duration { return time.Duration(w.rng.Int64N(int64(spread)) + 1) }
		w.lose = func(peer.ID, *peer.Mail) bool { return w.rng.Float64() < loss }
		sent := map[[2]int][]string{}
		for i := range n {
			a := w.rng.IntN(3)
			b := (a + 1 + w.rng.IntN(2)) % 3
			text := numbers(n)[i]
			require.NoError(rt, w.say(w.posts[a], w.posts[b], text))
			sent[[2]int{a, b}] = append(sent[[2]int{a, b}], text)
			w.run(time.Duration(w.rng.Int64N(int64(200*time.Millisecond))), never)
			for _, p := range w.posts {
				for k, list := range sent {
					if got := p.got[w.posts[k[0]].id]; w.posts[k[1]] == p && len(got) > 0 {
						require.Equal(rt, list[:len(got)], got)
					}
				}
			}
		}
		w.lose = nil
		require.True(rt, w.run(time.Minute, w.quiet), "it never falls silent")
		for k, list := range sent {
			require.Equal(rt, list, w.posts[k[1]].got[w.posts[k[0]].id])
		}
		for _, p := range w.posts {
			s := p.m.Stats()
			require.Zero(rt, s.Outstanding)
			require.Zero(rt, s.Bytes)
			require.Empty(rt, p.gaveUp)
		}
	})
}

// A message that goes through costs one segment and one acknowledgement; an answer within the delay takes the
// acknowledgement along.
func TestCostWhenAllIsWell(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	require.NoError(t, w.say(a, b, "host"))
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, []int{1, 1}, []int{a.sent, b.sent})
	require.NoError(t, w.say(a, b, "host"))
	w.run(2*time.Millisecond, never)
	require.NoError(t, w.say(b, a, "hosted"))
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, []int{3, 2}, []int{a.sent, b.sent}, "the segment back was the acknowledgement")
	require.Zero(t, a.m.Stats().Resent+b.m.Stats().Resent)
	w.run(time.Hour, never)
	require.Equal(t, []int{3, 2}, []int{a.sent, b.sent}, "nothing is sent when nothing is outstanding")
}

// Acks that are lost on their way cost repetitions, never a second delivery, and what is acknowledged at last
// counts for everything before it.
func TestLostAcknowledgements(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(from peer.ID, _ *peer.Mail) bool { return from == b.id }
	for _, s := range numbers(20) {
		require.NoError(t, w.say(a, b, s))
	}
	w.run(10*time.Second, never)
	require.Equal(t, numbers(20), b.got[a.id])
	require.Equal(t, 20, a.m.Stats().Outstanding)
	require.Positive(t, b.m.Stats().Duplicates)
	w.lose = nil
	require.True(t, w.run(3*time.Second, w.quiet))
	require.Equal(t, numbers(20), b.got[a.id])
}

// A connection that breaks takes with it what was on it. All of it comes again, and no more than once each while the
// acknowledgements come.
func TestBrokenConnection(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(peer.ID, *peer.Mail) bool { return true }
	for _, s := range numbers(500) {
		require.NoError(t, w.say(a, b, s))
	}
	w.lose = nil
	require.True(t, w.run(2*time.Second, func() bool { return len(b.got[a.id]) == 500 }),
		"one pause, not one for each batch")
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, numbers(500), b.got[a.id])
	require.Equal(t, uint64(500), a.m.Stats().Resent)
	require.Zero(t, b.m.Stats().Duplicates)
}

// One message that is missing is asked for as soon as a later one shows it, not after the pause of a repetition.
func TestMissingOneIsAskedFor(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(peer.ID, *peer.Mail) bool { return true }
	require.NoError(t, w.say(a, b, "0"))
	w.lose = nil
	w.run(50*time.Millisecond, never)
	require.NoError(t, w.say(a, b, "1"))
	require.NoError(t, w.say(a, b, "2"))
	require.True(t, w.run(10*time.Millisecond, func() bool { return len(b.got[a.id]) == 3 }))
	require.Equal(t, numbers(3), b.got[a.id])
	require.Equal(t, uint64(1), a.m.Stats().Resent)
	require.Equal(t, uint64(2), b.m.Stats().OutOfOrder)
}

// A connection that stands still without breaking holds nothing up: repetitions and their acknowledgements take the
// address alone now and then, which is another one.
func TestStalledConnection(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(_ peer.ID, m *peer.Mail) bool { return m.To.Inc != 0 }
	for _, s := range numbers(40) {
		require.NoError(t, w.say(a, b, s))
	}
	require.True(t, w.run(giveUpAfter, w.quiet))
	require.Equal(t, numbers(40), b.got[a.id])
	require.Empty(t, a.gaveUp)
}

// The window is bounded in messages, in bytes, and over all peers. What finds no room is an error, an effect once, and
// takes no number: what is sent later is delivered without it.
func TestFullWindow(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   Config
		size  int
		fits  int
		bound string
	}{
		"messages":         {Config{Messages: 5}, 1, 5, "5 messages"},
		"bytes":            {Config{Bytes: 100}, 30, 3, "100 bytes"},
		"one large":        {Config{Bytes: 100}, 300, 1, "100 bytes"},
		"bytes to all":     {Config{TotalBytes: 100}, 30, 3, "100 bytes to all peers"},
		"too large at all": {Config{TotalBytes: 100}, 101, 0, "100 bytes to all peers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNet(t, 1, 2, c.cfg)
			a, b := w.posts[0], w.posts[1]
			w.lose = func(peer.ID, *peer.Mail) bool { return true }
			text := strings.Repeat("x", c.size)
			for range c.fits {
				require.NoError(t, w.say(a, b, text))
			}
			for range 3 {
				err := w.say(a, b, text)
				var full *FullError
				require.ErrorAs(t, err, &full)
				require.ErrorIs(t, err, ErrFull)
				require.Equal(t, &FullError{b.id, wire.KindHomes, c.fits, c.fits * c.size, c.bound}, full)
				require.Contains(t, err.Error(), b.id.String())
			}
			require.Len(t, a.full, 1)
			require.Equal(t, uint64(3), a.m.Stats().Full)
			require.Equal(t, c.fits*c.size, a.m.Stats().Bytes)
			w.lose = nil
			require.True(t, w.run(time.Minute, w.quiet))
			require.Len(t, b.got[a.id], c.fits)
			if c.fits > 0 {
				require.NoError(t, w.say(a, b, text))
				require.True(t, w.run(time.Minute, w.quiet))
				require.Len(t, b.got[a.id], c.fits+1)
			}
		})
	}
}

// What came too early is held within bounds; the rest comes again.
func TestHeldWithinBounds(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	first := true
	w.lose = func(from peer.ID, m *peer.Mail) bool {
		drop := first && from == a.id
		first = first && !drop
		return drop || from == b.id
	}
	const n = maxHeld + 200
	for _, s := range numbers(n) {
		require.NoError(t, w.say(a, b, s))
	}
	w.run(100*time.Millisecond, never)
	require.Empty(t, b.got[a.id])
	require.Len(t, b.m.links[0].held, maxHeld)
	require.Equal(t, uint64(n-1-maxHeld), b.m.Stats().NotHeld)
	w.lose = nil
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, numbers(n), b.got[a.id])
}

// A process that starts anew at the same address shares nothing with its predecessor: frames of the one are ignored by
// the other, whatever way they took, and the stream to it begins at one.
func TestRestartBeginsAfresh(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	require.NoError(t, w.say(a, b, "old"))
	require.True(t, w.run(time.Second, w.quiet))
	var late []peer.Mail
	w.lose = func(from peer.ID, m *peer.Mail) bool {
		if from == a.id {
			late = append(late, *m)
		}
		return true
	}
	require.NoError(t, w.say(a, b, "late"))
	w.run(8*time.Second, never)
	w.lose = nil

	next := ip(2)
	next.Inc++
	w.posts = w.posts[:1]
	c := w.start(next, Config{})
	c.standing[a.id] = Present
	a.standing[b.id], a.standing[next] = Lost, Present
	w.follow(a)
	w.follow(c)
	require.NotEmpty(t, late)
	for _, m := range late {
		w.arrive(c, wireItem{from: a.id, mail: m})
	}
	require.Equal(t, uint64(len(late)), c.m.Stats().Stale)
	require.Empty(t, c.got)
	require.NoError(t, w.say(a, c, "new"))
	require.True(t, w.run(time.Second, w.quiet))
	require.Equal(t, []string{"new"}, c.got[a.id])
	require.ErrorIs(t, w.say(a, b, "more"), ErrNoPeer)
	require.Equal(t, uint64(2), a.m.Stats().Dropped)
}

// A member that this node does not know yet is not listened to, and not answered: it sends again, and is heard when the
// news of it has come.
func TestStrangerIsHeardWhenItIsKnown(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	b.standing[a.id] = Absent
	w.follow(b)
	require.NoError(t, w.say(a, b, "0"))
	require.NoError(t, w.say(a, b, "1"))
	w.run(20*time.Second, never)
	require.Empty(t, b.got)
	require.Zero(t, b.sent)
	require.Empty(t, b.m.links, "a stranger costs no memory")
	b.standing[a.id] = Doubted
	w.follow(b)
	require.True(t, w.run(5*time.Second, w.quiet))
	require.Equal(t, numbers(2), b.got[a.id])
}

// Notices leave three quarters of the window to what cannot wait. One that is not acknowledged when its peer is gone
// for good is handed back, once (SHD-4).
func TestNoticesCanWait(t *testing.T) {
	w := newNet(t, 1, 2, Config{Messages: 8})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(peer.ID, *peer.Mail) bool { return true }
	notice := func(text string) error {
		return a.m.Do(w.now, PostCommand{peer.Mail{To: b.id, Kind: wire.KindRefusals, Body: []byte(text)}, true})
	}
	require.NoError(t, notice("first"))
	require.NoError(t, w.say(a, b, "order"))
	var full *FullError
	require.ErrorAs(t, notice("second"), &full)
	require.Zero(t, a.m.Stats().Full, "whoever posts it keeps it")
	require.NoError(t, w.say(a, b, "order"))
	a.standing[b.id] = Lost
	require.NoError(t, a.m.Do(w.now, FollowCommand{Roster{Of: standings(func(peer.ID) Standing { return Lost })}}))
	require.ErrorIs(t, notice("third"), ErrNoPeer)
	var out Effects
	a.m.Drain(&out)
	require.Equal(t, []peer.Mail{{To: b.id, Kind: wire.KindRefusals, Body: []byte("first")}}, out.Closed)
	a.m.Drain(&out)
	require.Empty(t, out.Closed)
}

// The last word of a member that was removed is still taken, once; nothing is sent to it. Its numbers are forgotten
// when many others have gone after it, and then it is a stranger.
func TestTheRemoved(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	require.NoError(t, w.say(a, b, "0"))
	require.True(t, w.run(time.Second, w.quiet))
	require.NoError(t, w.say(b, a, "never sent"))
	b.standing[a.id] = Absent
	w.wires = nil
	w.follow(b)
	require.Zero(t, b.m.Stats().Outstanding)
	require.NoError(t, w.say(a, b, "leave-notice"))
	require.True(t, w.run(time.Second, func() bool { return a.m.Stats().Outstanding == 0 }))
	require.Equal(t, []string{"0", "leave-notice"}, b.got[a.id])
	require.ErrorIs(t, w.say(b, a, "heard"), ErrNoPeer)
	for i := range maxGone {
		id := peer.ID{Addr: ip(3).Addr, Inc: uint64(i + 1)}
		b.standing[id] = Present
		w.follow(b)
		require.NoError(t, b.m.Do(w.now, PostCommand{Mail: peer.Mail{To: id, Kind: wire.KindHomes}}))
		w.drain(b)
		delete(b.standing, id)
		w.follow(b)
	}
	require.Len(t, b.m.links, maxGone)
	_, known := b.m.find(a.id)
	require.False(t, known)
}

// A peer that acknowledges nothing is given up, but only while it is reachable and counts, later than the limit, and
// with the reason. Time in which it could not be reached does not count, nor does a sleep of this node; one
// acknowledgement ends the count.
func TestGivingUp(t *testing.T) {
	deaf := func(a, b *post) func(peer.ID, *peer.Mail) bool {
		return func(from peer.ID, _ *peer.Mail) bool { return from == b.id }
	}
	t.Run("reachable and silent", func(t *testing.T) {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.lose = deaf(a, b)
		require.NoError(t, w.say(a, b, "0"))
		w.run(giveUpAfter-time.Second, never)
		require.Empty(t, a.gaveUp)
		require.True(t, w.run(4*time.Second, func() bool { return len(a.gaveUp) > 0 }))
		require.Equal(t, b.id, a.gaveUp[0].ID)
		require.Regexp(t, `^1 control messages not acknowledged while it was reachable for 3\ds, `+
			`the first a homes sent 3\ds ago`, a.gaveUp[0].Reason)
		a.standing[b.id] = Condemned
		w.follow(a)
		require.ErrorIs(t, w.say(a, b, "1"), ErrNoPeer)
		w.run(time.Hour, never)
		require.Len(t, a.gaveUp, 1)
		require.Zero(t, a.m.Stats().Outstanding)
		w.lose = nil
		require.NoError(t, w.say(b, a, "still heard"), "so that it does not give up as well")
		require.True(t, w.run(time.Minute, w.quiet))
		require.Equal(t, []string{"still heard"}, a.got[b.id])
	})
	t.Run("nobody believes it", func(t *testing.T) {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.lose = deaf(a, b)
		require.NoError(t, w.say(a, b, "0"))
		w.run(2*giveUpAfter+10*time.Second, never)
		require.Len(t, a.gaveUp, 3, "it is said again after half as long")
		w.lose = nil
		require.True(t, w.run(5*time.Second, w.quiet))
		require.Equal(t, numbers(1), b.got[a.id])
	})
	t.Run("unreachable", func(t *testing.T) {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.lose = deaf(a, b)
		require.NoError(t, w.say(a, b, "0"))
		w.run(giveUpAfter/2, never)
		a.standing[b.id] = Doubted
		w.follow(a)
		w.run(time.Hour, never)
		a.standing[b.id] = Present
		w.follow(a)
		w.run(giveUpAfter/2-3*time.Second, never)
		require.Empty(t, a.gaveUp)
		w.run(6*time.Second, never)
		require.Len(t, a.gaveUp, 1)
	})
	t.Run("one acknowledgement", func(t *testing.T) {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.lose = deaf(a, b)
		require.NoError(t, w.say(a, b, "0"))
		w.run(giveUpAfter-2*time.Second, never)
		w.lose = func(from peer.ID, m *peer.Mail) bool {
			p, err := ParseSegment(m.Body)
			return from == a.id && err == nil && p.Seq == 2
		}
		require.NoError(t, w.say(a, b, "1"))
		w.run(giveUpAfter-4*time.Second, never)
		require.Equal(t, 1, a.m.Stats().Outstanding)
		require.Empty(t, a.gaveUp)
	})
	t.Run("everybody at once", func(t *testing.T) {
		w := newNet(t, 1, 4, Config{})
		a := w.posts[0]
		w.lose = func(from peer.ID, _ *peer.Mail) bool { return from != a.id }
		for _, p := range w.posts[1:] {
			require.NoError(t, w.say(a, p, "0"))
		}
		w.run(giveUpAfter+4*time.Second, never)
		require.Len(t, a.gaveUp, 3)
		for _, g := range a.gaveUp {
			require.Equal(t, 2, g.Alike, "each counts among the others")
		}
		require.NoError(t, a.m.Do(w.now, ForgiveCommand{}))
		w.run(giveUpAfter-3*time.Second, never)
		require.Len(t, a.gaveUp, 3)
	})
	t.Run("others are just heard again", func(t *testing.T) {
		w := newNet(t, 1, 3, Config{})
		a := w.posts[0]
		w.lose = func(from peer.ID, _ *peer.Mail) bool { return from != a.id }
		for _, p := range w.posts[1:] {
			require.NoError(t, w.say(a, p, "0"))
		}
		w.run(giveUpAfter-3*time.Second, never)
		w.lose = func(from peer.ID, _ *peer.Mail) bool { return from == w.posts[2].id }
		w.run(5*time.Second, never)
		require.Empty(t, a.gaveUp, "the second has not been tried since the first was heard")
		w.run(8*time.Second, never)
		require.Len(t, a.gaveUp, 1)
		require.Equal(t, w.posts[2].id, a.gaveUp[0].ID)
	})
	t.Run("own sleep", func(t *testing.T) {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.lose = deaf(a, b)
		require.NoError(t, w.say(a, b, "0"))
		w.run(10*time.Second, never)
		for range 3 {
			w.now += time.Hour
			w.step()
		}
		require.Empty(t, a.gaveUp)
	})
}

// When a peer can be reached again, what waits for it is sent at once.
func TestReachableAgain(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	a.standing[b.id] = Doubted
	w.follow(a)
	w.lose = func(peer.ID, *peer.Mail) bool { return true }
	require.NoError(t, w.say(a, b, "0"))
	w.run(10*time.Second, never)
	require.True(t, a.underWay(b, w.now))
	require.False(t, a.underWay(b, time.Second/2), "nothing was posted as early as that")
	w.lose = nil
	a.standing[b.id] = Present
	w.follow(a)
	require.True(t, w.run(5*time.Millisecond, func() bool { return len(b.got[a.id]) == 1 }))
	require.True(t, w.run(time.Second, w.quiet))
	require.False(t, a.underWay(b, w.now))
}

func (p *post) underWay(to *post, since time.Duration) bool {
	is, _ := p.m.UnderWay(to.id, since)
	return is
}

func (p *post) lost(to *post, since time.Duration) bool {
	_, lost := p.m.UnderWay(to.id, since)
	return lost
}

// What finds no room is lost, and its sender may ask whether something of its own was.
func TestLostSince(t *testing.T) {
	w := newNet(t, 1, 2, Config{Messages: 1})
	a, b := w.posts[0], w.posts[1]
	require.NoError(t, w.say(a, b, "0"))
	require.False(t, a.lost(b, 0))
	require.ErrorIs(t, w.say(a, b, "1"), ErrFull)
	at := w.now
	require.True(t, w.run(time.Second, w.quiet))
	require.NoError(t, w.say(a, b, "2"))
	require.True(t, a.lost(b, at))
	require.False(t, a.lost(b, at+1))
	require.False(t, b.lost(a, 0))
}

// A peer of an earlier version gets messages bare, and may send them so; one that sends segments may not.
func TestPeerWithoutSegments(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.lose = func(peer.ID, *peer.Mail) bool { return true }
	require.NoError(t, w.say(a, b, "0"))
	var bare []string
	w.lose = func(_ peer.ID, m *peer.Mail) bool {
		if m.Kind == wire.KindHomes {
			bare = append(bare, string(m.Body))
		}
		return true
	}
	require.NoError(t, a.m.Do(w.now, PlainCommand{b.id}))
	w.drain(a)
	require.NoError(t, w.say(a, b, "1"))
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, numbers(2), bare, "nothing of it is repeated")
	require.NoError(t, a.m.Bare(b.id, wire.KindHomes))
	w.lose = nil
	require.NoError(t, w.say(b, a, "segment"))
	w.run(10*time.Millisecond, never)
	require.ErrorIs(t, a.m.Bare(b.id, wire.KindHomes), ErrNonsense)
}

// InvalidFrames is refused and changes nothing.
func TestInvalidFrames(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	require.NoError(t, w.say(a, b, "0"))
	require.True(t, w.run(time.Second, w.quiet))
	before := *a.m.links[0]
	ahead := Segment{From: b.id.Inc, To: a.id.Inc, Seq: 1, Ack: 2, Kind: wire.KindHomes}
	body := AppendSegment(nil, &ahead)
	require.ErrorIs(t, a.m.Handle(w.now, w.now, b.id, wire.KindSegment, body), ErrNonsense)
	require.Empty(t, a.m.Peek().Delivered)
	far := segmentAck{from: b.id.Inc, to: a.id.Inc, ack: 1 << 40}
	require.ErrorIs(t, a.m.Handle(w.now, w.now, b.id, wire.KindSegmentAck, far.append(nil)), ErrNonsense)
	require.ErrorIs(t, a.m.Handle(w.now, w.now, b.id, wire.KindHomes, nil), ErrBadKind)
	require.ErrorIs(t, a.m.Do(w.now, PostCommand{Mail: peer.Mail{To: b.id, Kind: wire.KindStatus}}), ErrBadKind)
	require.ErrorIs(t, a.m.Do(w.now, nil), ErrBadCommand)
	require.Equal(t, before, *a.m.links[0])
}

// FuzzHandle: whatever arrives, a courier neither fails nor holds more than its bounds, and never delivers a number
// twice.
func FuzzHandle(f *testing.F) {
	for _, p := range samples() {
		f.Add(true, AppendSegment(nil, &p), uint8(3))
	}
	for _, c := range acks() {
		f.Add(false, c.append(nil), uint8(1))
	}
	f.Fuzz(func(t *testing.T, segment bool, body []byte, posted uint8) {
		m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
		require.NoError(t, m.Do(1, FollowCommand{Roster{Of: standings(func(peer.ID) Standing { return Present })}}))
		for range posted % 8 {
			require.NoError(t, m.Do(1, PostCommand{Mail: peer.Mail{To: ip(2), Kind: wire.KindHomes, Body: []byte("x")}}))
		}
		kind := wire.KindSegmentAck
		if segment {
			kind = wire.KindSegment
		}
		held := spent.Bytes()
		defer func() { spent.Within(t, held, 64*len(body)) }()
		err := m.Handle(2, 2, ip(2), kind, body)
		var out Effects
		m.Drain(&out)
		require.False(t, err != nil && len(out.Delivered) > 0)
		n := len(out.Delivered)
		_ = m.Handle(3, 3, ip(2), kind, body)
		require.False(t, n > 0 && len(m.Peek().Delivered) > 0, "delivered twice")
		s := m.Stats()
		require.LessOrEqual(t, s.Outstanding, int(posted%8))
		m.Drain(&out)
	})
}
