// Tests of tells that are lost with a connection or a node, on real sockets: each is reported to its sender, by count.

package driver

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/route"
)

// behindCutters is a pair with connections that can be cut and frozen.
func behindCutters(t *testing.T) (p *pair, cutters []*cutter) {
	p = newPair(t, func(cfg *Config) {
		cfg.Listen = port.Keep(t)
		cutters = append(cutters, newCutter(t, cfg.Listen))
		cfg.Advertise = cutters[len(cutters)-1].ln.Addr().String()
	})
	return p, cutters
}

// account returns how many tells were handled, and how many were reported to the sender for each reason.
func (p *pair) account() (handled uint64, told map[route.Reason]uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	told = map[route.Reason]uint64{}
	for _, u := range p.failed {
		told[u.Reason] += u.Count
	}
	return uint64(len(p.got)), told
}

// Connections break in mid-stream again and again while both nodes live: every accepted tell is handled, or reported as
// lost in flight, and never both (SHD-4).
func TestLostInFlightIsExact(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			p, cutters := behindCutters(t)
			r := p.at[mode]
			_, err := r.AskWithin(patience, "a", []byte("x"), nil)
			require.NoError(t, err)
			accepted := uint64(0)
			for range 10 {
				for i := range 3000 {
					if r.Tell(fmt.Sprint(i%7), make([]byte, 100)) == nil {
						accepted++
					}
					if i%700 == 699 {
						cutters[1].cut()
					}
				}
				for _, c := range cutters {
					c.cut()
				}
			}
			done := func() uint64 {
				handled, told := p.account()
				return handled + told[route.LostInFlight] + told[route.MailboxFull]
			}
			eventually(t, func() bool { return done() >= accepted })
			_, err = r.AskWithin(patience, "a", []byte("x"), nil)
			require.NoError(t, err)
			require.Equal(t, accepted, done())
			handled, told := p.account()
			t.Logf("accepted %d, handled %d, told %v", accepted, handled, told)
		})
	}
}

// Nothing comes through to a node any more, and it is downed: its sender hears of everything that it had sent there,
// and of what still waited (SHD-4).
func TestTellsToACutOffNodeAreTold(t *testing.T) {
	t.Parallel()
	p, cutters := behindCutters(t)
	r := p.at[entity.Worker]
	_, err := r.AskWithin(patience, "a", []byte("x"), nil)
	require.NoError(t, err)
	for _, c := range cutters {
		c.freeze(t)
	}
	accepted := atomic.Uint64{}
	for range 3000 {
		if r.Tell("a", make([]byte, 100)) == nil {
			accepted.Add(1)
		}
	}
	sent := func() (n uint64) {
		for _, l := range p.a.Stats().Transport.Links {
			for i := range l.Data {
				n += uint64(l.Data[i].InFlight)
			}
		}
		return n
	}
	eventually(t, func() bool { return sent() > 100_000 })
	require.NoError(t, p.a.Down(t.Context(), p.b.Self().Addr.String()))
	eventually(t, func() bool {
		handled, told := p.account()
		return handled+told[route.LostInFlight]+told[route.PeerLost]+told[route.TimedOut] >= accepted.Load()
	})
	handled, told := p.account()
	require.Zero(t, handled)
	require.Positive(t, told[route.LostInFlight])
	require.Equal(t, accepted.Load(), told[route.LostInFlight]+told[route.PeerLost]+told[route.TimedOut])
}
