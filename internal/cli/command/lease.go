// The lease of kith run: which one --lease names, and what is wrong with it.

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/lease"
)

// leaseFlags name the lock outside of the cluster.
type leaseFlags struct {
	Lease string `placeholder:"ADDRESS" help:"${lease_help}"`

	kinds []lease.Kind // beside those that every build has
	lease lease.Service
}

// leastLease is the least TTL of a lease for a resolver, which keeps it for 40 s after the last removal.
const leastLease = time.Minute

// openLease opens what --lease names, which asks no service, and returns what is wrong with it.
func (f *leaseFlags) openLease(resolver string) error {
	switch wants := resolver == kith.LeaseMajority.String(); {
	case f.Lease == "" && wants:
		return fmt.Errorf("--resolver=%s needs --lease", resolver)
	case f.Lease == "":
		return nil
	case !wants:
		return fmt.Errorf("--lease is for --resolver=%s", kith.LeaseMajority)
	}
	l, err := lease.Open(context.Background(), f.Lease, f.kinds...)
	if err != nil {
		return fmt.Errorf("--lease: %w", err)
	}
	if l.TTL() < leastLease {
		return errors.Join(fmt.Errorf("--lease: its ttl is %v, must be at least %v", l.TTL(), leastLease), l.Close())
	}
	f.lease = l
	return nil
}

// closeLease closes what was opened.
func (f *leaseFlags) closeLease() {
	if f.lease != nil {
		_ = f.lease.Close() // nothing waits for it
	}
}
