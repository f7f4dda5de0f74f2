// Lines: the plain network of a swarm.

package scale

import (
	"math/rand/v2"
	"time"
)

// Lines says how good the network of a swarm is. The zero value is lossless links of one millisecond.
type Lines struct {
	Delay time.Duration // one way; zero means 1 ms
	Loss  float64       // chance from 0 to 1 that a packet is lost
	// Datagrams: a lost packet is gone. Otherwise it comes after a retransmission delay, 200 ms and doubling, and what
	// is behind it on the same connection waits for it, as on TCP.
	Datagrams bool
}

type lines struct {
	Lines
	rng  *rand.Rand
	last map[uint64]time.Duration // by connection: the latest arrival, which nothing behind it overtakes
	lost uint64
}

func newLines(cfg Lines, seed uint64) lines {
	if cfg.Delay == 0 {
		cfg.Delay = time.Millisecond
	}
	return lines{Lines: cfg, rng: rand.New(rand.NewPCG(seed, drawsOfLines)), last: map[uint64]time.Duration{}}
}

// drawsOfLines and drawsOfNodes are the streams of one seed: what one draws does not shift the other.
const (
	drawsOfLines uint64 = iota + 1
	drawsOfNodes
)

// A lost packet comes after the first delay, which doubles up to the last.
const (
	firstRetransmit = 200 * time.Millisecond
	lastRetransmit  = 5 * time.Second
)

// way says on which connection of a pair a letter travels, and in which direction.
type way uint8

const (
	wayThere  way = iota // on the sender's connection to that incarnation
	wayBack              // an answer on the connection of the asker
	wayDoor              // on the sender's connection to any process at the address
	wayAnswer            // an answer on that one
)

// arrival draws when a packet sent now is there. Without loss all connections are equal, so order keeps itself.
func (l *lines) arrival(now time.Duration, from, to int32, w way) (at time.Duration, lost bool) {
	at = now + l.Delay
	if l.Loss <= 0 {
		return at, false
	}
	if l.Datagrams {
		if l.rng.Float64() < l.Loss {
			l.lost++
			return 0, true
		}
		return at, false
	}
	at += l.again()
	line := uint64(uint32(from))<<34 | uint64(uint32(to))<<2 | uint64(w)
	last, open := l.last[line]
	if !open && (w == wayThere || w == wayDoor) {
		for range dialLegs {
			at += l.Delay + l.again()
		}
	}
	at = max(at, last)
	l.last[line] = at
	return at, false
}

// dialLegs is how often a packet must get through before a new connection carries something: the handshake of TCP,
// the hello and its answer.
const dialLegs = 4

// again draws how long the retransmissions of one packet take.
func (l *lines) again() (late time.Duration) {
	for d := firstRetransmit; d <= lastRetransmit && l.rng.Float64() < l.Loss; d *= 2 {
		l.lost++
		late += d
	}
	return late
}
