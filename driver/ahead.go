// Ahead: looks a few frames ahead, so that the memory that their entities need is on its way while others are handled.

package driver

import (
	"encoding/binary"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/wire"
)

// aheadFrames is how many frames are looked at together: about as many waits for memory as a core keeps under way.
const aheadFrames = 16

// ahead is what one goroutine that runs handlers knows of the frames that come next.
type ahead struct {
	at, n  int
	hashes [aheadFrames]uint64         // of the ids; zero: not looked at
	likely [aheadFrames]*entity.Entity // whose they probably are
	sink   uint32                      // keeps the touches from being left out
}

// begin starts a new run of frames.
func (a *ahead) begin() { a.at, a.n = 0, 0 }

// next steps on to the frame that frames begins with, and returns the hash of its id, or zero when that is not known.
// All frames are whole. cache is the goroutine's own, and so is q: shards that another one steps are not looked at.
func (a *ahead) next(frames []byte, cache *regionCache, q *execQueue) (hash uint64) {
	if a.at == a.n {
		a.look(frames, cache, q)
	}
	hash = a.hashes[a.at%aheadFrames]
	a.at++
	return hash
}

// look finds out whose the next frames probably are, all at once, and then touches these entities, all at once: the
// waits for memory overlap. Everything is looked at again, and judged, when its turn comes.
func (a *ahead) look(frames []byte, cache *regionCache, q *execQueue) {
	a.at, a.n = 0, 0
	for len(frames) > 0 && a.n < aheadFrames {
		size := int(binary.LittleEndian.Uint32(frames))
		f := frames[:size:size]
		frames = frames[size:]
		i := a.n % aheadFrames
		a.hashes[i], a.likely[i] = 0, nil
		a.n++
		if h := aheadHost(f, cache, q); h != nil {
			end := wire.EnvelopeSize + int(binary.LittleEndian.Uint16(f[6:]))
			if end <= len(f) {
				a.hashes[i] = entity.HashID(f[wire.EnvelopeSize:end])
				a.likely[i] = h.sh.Foresee(a.hashes[i])
			}
		}
	}
	for _, e := range a.likely[:a.n] {
		if e != nil {
			a.sink += e.Warm()
		}
	}
}

// aheadHost returns the host of an envelope if it is of the same type as the last frame and this goroutine alone steps
// its host, and nil otherwise.
func aheadHost(f []byte, cache *regionCache, q *execQueue) *host {
	r := cache.last
	if r == nil || len(f) < wire.EnvelopeSize || f[4] != byte(wire.KindEnvelope) ||
		binary.LittleEndian.Uint32(f[8:]) != cache.id {
		return nil
	}
	shard := binary.LittleEndian.Uint32(f[12:])
	if shard >= r.shards {
		return nil
	}
	if h := r.hosts[shard].Load(); h != nil && h.alone && h.queue == q {
		return h
	}
	return nil
}
