// Tests of links that wait for more frames, and of those that do not.

package transport

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

// What makes a link wait, and what ends it (CARD-3, SHD-5).
func TestDensity(t *testing.T) {
	dense := func(runs int) density { return density{runs: runs, ended: time.Second} }
	for _, c := range []struct {
		name  string
		d     density
		after time.Duration
		n     int
		waits bool
		runs  int
	}{
		{"the first of a row", dense(0), 0, 100, false, 1},
		{"the last that is written at once", dense(denseRuns - 1), denseGap, 100, false, denseRuns},
		{"dense", dense(denseRuns), denseGap, 100, true, denseRuns},
		{"dense, just short", dense(denseRuns), 0, denseSize, true, denseRuns},
		{"not short", dense(denseRuns), 0, denseSize + 1, false, denseRuns},
		{"nothing to write", dense(denseRuns), 0, 0, false, denseRuns},
		{"a pause ends the row", dense(denseRuns), denseGap + 1, 100, false, 0},
	} {
		require.Equal(t, c.waits, c.d.waits(time.Second+c.after, c.n), c.name)
		require.Equal(t, c.runs, c.d.runs, c.name)
	}
}

// A smaller write soon behind a large one waits for more frames.
func TestStream(t *testing.T) {
	var d density
	require.False(t, d.waits(time.Second, streamSize-1))
	require.False(t, d.waits(time.Second, streamSize), "a large one goes at once")
	require.True(t, d.waits(time.Second+streamGap-1, streamSize-1))
	require.True(t, d.waits(time.Second+streamGap-1, 1))
	require.False(t, d.waits(time.Second+streamGap-1, 0), "nothing to write")
	require.False(t, d.waits(time.Second+streamGap, streamSize-1), "the stream is over")
	require.Zero(t, d.bulk)
	require.False(t, d.streams(2*time.Second, streamSize))
	require.True(t, d.streams(2*time.Second, 1))
}

// A link with frames that come one upon the other waits for more frames, as does one in a stream; one with pauses does
// not, nor does one with frames that a caller waits for; every frame arrives, in order (CARD-3).
func TestCoalescing(t *testing.T) {
	const frames = 200
	for _, c := range []struct {
		name  string
		tick  time.Duration // what the clock goes on by, whenever somebody looks at it
		now   bool          // somebody waits for the frames
		most  int           // in bytes, of the first write
		rests bool
	}{
		{"dense", 0, false, 0, true},
		{"pauses", time.Millisecond, false, 0, false},
		{"urgent", 0, true, 0, false},
		{"short pauses", 2 * denseGap, false, streamSize / 2, false},
		{"a stream with them", 2 * denseGap, false, 2 * streamSize, true},
		{"an urgent stream with them", 2 * denseGap, true, 2 * streamSize, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newRider(), newRider()
			var clock atomic.Int64
			ta := start(t, a, func(cfg *Config) {
				cfg.Now = func() time.Duration { return time.Duration(clock.Add(int64(c.tick))) }
			})
			tb := start(t, b, nil)
			got := make(chan uint32, frames)
			b.onData = func(in *InConn, fs []byte) {
				eachFrame(fs, func(f []byte) {
					var e wire.Envelope
					require.NoError(t, wire.ParseEnvelope(f, &e))
					got <- e.Epoch
				})
				in.Consumed(len(fs))
			}
			link := ta.Link(tb.Self())
			link.Lock()
			seqs := uint32(0)
			for ; int(seqs)*wire.SizeEnvelope(1, 16) < c.most; seqs++ {
				appendOne(t, link, seqs, c.now)
			}
			wake := seqs > 0 && link.Commit()
			link.Unlock()
			if wake {
				link.Wake(nil)
			}
			for seq := range seqs {
				require.Equal(t, seq, want(t, got))
			}
			for seq := range uint32(frames) {
				tellOne(t, link, seq, c.now)
				require.Equal(t, seq, want(t, got)) // each on its own, as when loop and sender take turns on a core
			}
			require.Equal(t, c.rests, ta.Stats().Data.CoalescingWaits > 0, "%d rests", ta.Stats().Data.CoalescingWaits)
			for seq := range uint32(frames) { // and at full speed
				tellOne(t, link, seq, c.now)
			}
			for seq := range uint32(frames) {
				require.Equal(t, seq, want(t, got))
			}
		})
	}
}

// tellOne appends one envelope that carries seq as its epoch.
func tellOne(t *testing.T, link *Link, seq uint32, now bool) {
	t.Helper()
	link.Lock()
	appendOne(t, link, seq, now)
	wake := link.Commit()
	link.Unlock()
	if wake {
		link.Wake(nil)
	}
}

// appendOne is its part under the lock.
func appendOne(t *testing.T, link *Link, seq uint32, now bool) {
	t.Helper()
	room, err := link.Reserve(wire.SizeEnvelope(1, 16))
	require.NoError(t, err)
	wire.PutEnvelope(room, &wire.Envelope{Epoch: seq, Payload: make([]byte, 16)}, "x")
	if now {
		link.Hurry()
	}
}

// A frame that somebody waits for has a link that waits for more frames written at once.
func TestUrgentFrameEndsTheWait(t *testing.T) {
	link := &Link{}
	link.scheduled = true
	link.Hurry()
	require.False(t, link.Commit(), "the loop is about to run it")
	require.True(t, link.urgent)
	link.lingers = true
	require.False(t, link.Commit(), "it waits with the others")
	link.Hurry()
	require.True(t, link.Commit())
	link.Hurry()
	require.False(t, link.Commit(), "the loop has been woken")
}
