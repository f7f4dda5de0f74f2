// Visits: how often one address may come to the door without proving anything.

package transport

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// maxVisitors bounds the addresses of which visits are remembered, each for as long as it is in debt. All beyond it
// share one account.
const maxVisitors = 4096

// visits bounds the connections that one address opens with a hello that does not get through: rate a second, and twice
// as many at once. A hello that gets through gives its visit back, so honest nodes behind one address, however many,
// are bounded only in how many say hello at the same moment. Not safe for concurrent use.
type visits struct {
	rate  int
	debt  map[netip.Addr]time.Duration // by visitor: the time at which it has paid for all its visits
	swept time.Duration
	told  atomic.Int64 // when one of another cluster was last reported, safe for concurrent use; zero: never
}

// visitor is the account that a visit from an address goes to: the address, of IPv6 its network of 64 bits, which one
// host can have to itself.
func visitor(from netip.Addr) netip.Addr {
	if from.Is6() && !from.IsLinkLocalUnicast() {
		if p, err := from.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return from
}

// price is for how long one visit is in debt.
func (v *visits) price() time.Duration { return time.Second / time.Duration(v.rate) }

// account finds the key of a visitor, and makes room for it.
func (v *visits) account(now time.Duration, from netip.Addr) netip.Addr {
	who := visitor(from)
	if _, known := v.debt[who]; known || len(v.debt) < maxVisitors {
		return who
	}
	if now-v.swept >= time.Second { // all that there is to be found is found at once
		v.swept = now
		for a, until := range v.debt {
			if until <= now {
				delete(v.debt, a)
			}
		}
		if len(v.debt) < maxVisitors {
			return who
		}
	}
	return netip.Addr{}
}

// come books a visit and reports whether it may go on.
func (v *visits) come(now time.Duration, from netip.Addr) bool {
	who := v.account(now, from)
	until := max(v.debt[who], now)
	if until-now > 2*time.Second-v.price() {
		return false
	}
	if v.debt == nil {
		v.debt = map[netip.Addr]time.Duration{}
	}
	v.debt[who] = until + v.price()
	return true
}

// proved gives a visit back.
func (v *visits) proved(now time.Duration, from netip.Addr) {
	who := visitor(from)
	if _, known := v.debt[who]; !known {
		who = netip.Addr{}
	}
	if until := v.debt[who] - v.price(); until > now {
		v.debt[who] = until
	} else {
		delete(v.debt, who)
	}
}
