// The leases of kith run: which store --lease names, for the resolver and for sessions, and what is wrong with it.

package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/lease"
)

// leaseFlags name the lock outside of the cluster.
type leaseFlags struct {
	Lease         string        `placeholder:"ADDRESS" help:"${lease_help}"`
	Session       bool          `help:"${session_help}"`
	SessionTTL    time.Duration `name:"session-ttl" default:"5s" help:"How long a session lease lasts, 1s to 1m."`
	SessionOutage time.Duration `default:"10m" help:"${outage_help}"`

	kinds   []lease.Kind // beside those that every build has
	lease   lease.Service
	session kith.Session
	opened  []lease.Service // all of these
}

// leastLease is the least TTL of a lease for a resolver, which keeps it for 40 s after the last removal.
const leastLease = time.Minute

// openLease opens what --lease names, which asks no service, and returns what is wrong with it.
func (f *leaseFlags) openLease(resolver string) error {
	wants := resolver == kith.LeaseMajority.String()
	switch {
	case f.Lease == "" && wants:
		return fmt.Errorf("--resolver=%s needs --lease", resolver)
	case f.Lease == "" && f.Session:
		return errors.New("--session needs --lease")
	case f.Lease == "":
		return nil
	case !wants && !f.Session:
		return fmt.Errorf("--lease is for --resolver=%s and --session", kith.LeaseMajority)
	}
	if f.Session {
		if err := f.openSession(); err != nil {
			return errors.Join(err, f.closeLease())
		}
	}
	if !wants {
		return nil
	}
	l, err := f.open(f.Lease)
	if err == nil && l.TTL() < leastLease {
		err = fmt.Errorf("--lease: its ttl is %v, must be at least %v", l.TTL(), leastLease)
	}
	if err != nil {
		return errors.Join(err, f.closeLease())
	}
	f.lease = l
	return nil
}

// openSession opens the store of sessions: the same, with leases that last as long as a session and as its end.
func (f *leaseFlags) openSession() error {
	ends, err := endsFor(f.SessionTTL, f.SessionOutage)
	if err != nil {
		return err
	}
	held, err := f.open(lasting(f.Lease, f.SessionTTL))
	if err != nil {
		return err
	}
	ended, err := f.open(lasting(f.Lease, ends))
	if err != nil {
		return err
	}
	f.session = kith.Session{Service: held, Ends: ended}
	return nil
}

// endsFor returns how long an end is to be kept for a node that may be without a session for so long, to a second.
func endsFor(ttl, outage time.Duration) (time.Duration, error) {
	if ttl < time.Second || ttl > time.Minute {
		return 0, fmt.Errorf("--session-ttl is %v, must be 1s to 1m", ttl)
	}
	least := 8 * ttl
	if outage < least || outage > mostOutage {
		return 0, fmt.Errorf("--session-outage is %v, must be %v (8 times --session-ttl) to %v", outage, least, mostOutage)
	}
	ends := (outage + ttl) * 10 / 9
	return (ends + time.Second - 1).Truncate(time.Second), nil
}

// mostOutage is what a lease of a day allows.
const mostOutage = 20 * time.Hour

// lasting returns the address of a lease with another ttl.
func lasting(address string, ttl time.Duration) string {
	base, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return address // which Open refuses
	}
	values.Set("ttl", ttl.String())
	return base + "?" + values.Encode()
}

// open opens a lease, which closeLease closes.
func (f *leaseFlags) open(address string) (lease.Service, error) {
	l, err := lease.Open(context.Background(), address, f.kinds...)
	if err != nil {
		return nil, fmt.Errorf("--lease: %w", err)
	}
	f.opened = append(f.opened, l)
	return l, nil
}

// closeLease closes what was opened.
func (f *leaseFlags) closeLease() error {
	var errs []error
	for _, l := range f.opened {
		errs = append(errs, l.Close())
	}
	f.opened = nil
	return errors.Join(errs...)
}
