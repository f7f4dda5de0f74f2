// Sessions: nodes that hold session leases, and the faults of their store.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/leasestore"
	"github.com/kith-io/kith/lease"
)

// Sessions says where nodes hold sessions, or that they have tenures; zero: neither.
type Sessions struct {
	Store  leasestore.Kind
	TTL    time.Duration // of a session
	Outage time.Duration // for how long a node may be without one
	Tenure kith.Tenure   // with that there is no Store
}

func (s Sessions) on() bool { return s.Store != "" }

// tenures reports whether nodes have tenures.
func (s Sessions) tenures() bool { return s.Tenure != kith.Tenure{} }

// leases is the store of a run; without sessions there is none.
type leases struct {
	leasestore.Store
	is Sessions
}

// openLeases makes the store of a run, in a folder.
func openLeases(cfg *Config, dir string, net faultDriver) (l leases, err error) {
	if !cfg.Sessions.on() {
		return l, nil
	}
	c := leasestore.Config{Kind: cfg.Sessions.Store, Dir: filepath.Join(dir, "leases"), Nodes: cfg.Nodes}
	if n, far := net.(neighbour); far {
		c.Listen = n.listenAt
	}
	l.is = cfg.Sessions
	l.Store, err = leasestore.Open(c)
	return l, err
}

// end closes it.
func (l leases) end() error {
	if !l.is.on() {
		return nil
	}
	return l.Close()
}

// sessionArgs says where the node of a child holds its session.
type sessionArgs struct {
	Lease     string // address; empty: it holds none
	TTL, Ends time.Duration
}

// of returns what the node of a slot is started with.
func (l leases) of(slot int) (a sessionArgs) {
	if !l.is.on() {
		return a
	}
	return sessionArgs{l.Address(slot), l.is.TTL, (l.is.Outage+l.is.TTL)*10/9 + time.Second}
}

// open opens the store of a node, which has it for as long as the process runs.
func (a sessionArgs) open(ctx context.Context, kinds []lease.Kind) (s kith.Session, err error) {
	if a.Lease == "" {
		return s, nil
	}
	lasting := func(ttl time.Duration) (l lease.Service) {
		l, bad := lease.Open(ctx, a.Lease+"?"+url.Values{"ttl": {ttl.Truncate(time.Second).String()}}.Encode(), kinds...)
		err = errors.Join(err, bad)
		return l
	}
	s.Service, s.Ends = lasting(a.TTL), lasting(a.Ends)
	if err != nil {
		return kith.Session{}, fmt.Errorf("store of sessions: %w", err)
	}
	return s, nil
}

// canCome reports whether a fault can come over such a network, and over the store of such sessions.
func canCome(net faultDriver, s Sessions, k Kind) bool {
	if !k.OfStore() {
		return net.can(k)
	}
	return s.on() && (k != StoreAnew || s.Store.Restarts())
}

// breakStore lets a fault of the store come, last and end.
func breakStore(ctx context.Context, h *harness, hit *struck) {
	err := h.leases.put(hit, true)
	cli.Pause(ctx, hit.For)
	if err = errors.Join(err, h.leases.put(hit, false)); err != nil {
		h.line.printf("the store of sessions does not take the fault: %v", err)
	}
}

// put puts a fault into the store or takes it out. A round has one at most.
func (l leases) put(hit *struck, on bool) error {
	switch hit.Kind {
	case StoreCut:
		if on {
			return l.Cut(hit.who)
		}
		return l.Cut(nil)
	case StoreStop:
		return l.Stop(on)
	}
	if !on {
		return nil
	}
	return l.Restart()
}
