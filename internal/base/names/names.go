// Package names resolves and dials addresses that are names: both address families are looked up apart, what one of
// them answers is taken, and the address that last stood is used when a look-up fails (OPS-3). Every part of a node
// that dials names dials them here.
package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds and times.
const (
	MaxHosts  = 4096 // names of which a Book remembers something; beyond that the one used longest ago goes
	maxUnder  = 64   // look-ups of a Book that are under way at once
	maxGood   = 4    // addresses that stood, of one name
	maxPast   = 64   // addresses that were passed, of one name
	askTime   = 15 * time.Second
	nextAfter = 250 * time.Millisecond // after which the next address of a name is dialled beside the one before
	patience  = 300 * time.Millisecond // after which a remembered address is dialled, though the look-up goes on
	grace     = 50 * time.Millisecond  // for the second family, when the first has answered
	lateFor   = 30 * time.Second       // for how long an answer is good that came too late for its caller
)

// ErrBusy is wrapped by the LookupError of a name that was not asked for: too many look-ups were under way.
var ErrBusy = errors.New("names: too many look-ups are under way")

// Resolver looks up the addresses of one family, "ip4" or "ip6", of a name. A *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// LookupError is a name of which no address is known.
type LookupError struct {
	Host string
	// Missing: the name has no address, as DNS says. Else nothing is known of it: no server answered, or it failed.
	Missing bool
	Err     error
}

// Error says which, and why.
func (e *LookupError) Error() string {
	if e.Missing {
		return fmt.Sprintf("look-up of %s: there is no such name", e.Host)
	}
	return fmt.Sprintf("look-up of %s failed: %v", e.Host, e.Err)
}

// Unwrap returns what the resolver said.
func (e *LookupError) Unwrap() error { return e.Err }

// Unasked reports whether err is that of a dial that asked nobody, since the name could not be looked up. That DNS says
// that there is no such name is an answer.
func Unasked(err error) bool {
	var e *LookupError
	return errors.As(err, &e) && !e.Missing
}

// Missing reports whether err says that a name has no such record: of a look-up of this package, or of the library's.
func Missing(err error) bool {
	var e *LookupError
	if errors.As(err, &e) {
		return e.Missing
	}
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// Addresses looks both families of a name up and returns what they have, at most wait after the first of them had
// something. Errors: *LookupError, with Missing only when both families say that they have nothing.
func Addresses(ctx context.Context, r Resolver, host string, wait time.Duration) ([]netip.Addr, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := newAnswer(host)
	go a.ask(ctx, r)
	select {
	case <-a.some:
	case <-a.all:
	case <-ctx.Done():
		return nil, &LookupError{Host: host, Err: ctx.Err()}
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-a.all:
	case <-ctx.Done():
	case <-t.C:
	}
	return a.known()
}

// answer is one look-up of both families.
type answer struct {
	host string
	some chan struct{} // closed when a family has addresses
	all  chan struct{} // closed when both have answered

	lock  sync.Mutex
	addrs []netip.Addr
	errs  []error // of the families that have answered without an address

	missed atomic.Bool  // the caller had gone
	at     atomic.Int64 // when an address was found last, nanoseconds since 1970; zero: none was
}

func newAnswer(host string) *answer {
	return &answer{host: host, some: make(chan struct{}), all: make(chan struct{})}
}

// ask asks for both families, and returns when both have answered.
func (a *answer) ask(ctx context.Context, r Resolver) {
	var both sync.WaitGroup
	for _, family := range [...]string{"ip4", "ip6"} {
		both.Go(func() { a.took(r.LookupNetIP(ctx, family, a.host)) })
	}
	both.Wait()
	close(a.all)
}

// took notes what a family answered.
func (a *answer) took(list []netip.Addr, err error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if err != nil {
		a.errs = append(a.errs, err)
		return
	}
	first := len(a.addrs) == 0
	for _, ip := range list {
		if ip = ip.Unmap().WithZone(""); !slices.Contains(a.addrs, ip) {
			a.addrs = append(a.addrs, ip)
		}
	}
	if len(list) > 0 {
		a.at.Store(time.Now().UnixNano())
	}
	if first && len(a.addrs) > 0 {
		close(a.some)
	}
}

// known returns what has been answered so far.
func (a *answer) known() ([]netip.Addr, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if len(a.addrs) > 0 {
		return slices.Clone(a.addrs), nil
	}
	e := &LookupError{Host: a.host, Missing: true}
	select {
	case <-a.all:
	default:
		e.Missing, e.Err = false, errors.New("no answer yet")
	}
	for _, err := range a.errs {
		if !missing(err) {
			e.Missing, e.Err = false, err
		} else if e.Err == nil {
			e.Err = err
		}
	}
	return nil, e
}

// missing reports whether a resolver says that a name has no address of a family.
func missing(err error) bool {
	var dns *net.DNSError
	var addr *net.AddrError // the file of hosts has it in the other family
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &addr)
}
