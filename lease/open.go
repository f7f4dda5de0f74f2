// Open: a lease by its address.

package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is one way to keep leases. Its functions own the Address that they are given.
type Kind struct {
	// Scheme is what addresses of this kind begin with.
	Scheme string
	// Open makes the lease. It asks no service that may be away at the moment: a node starts without one.
	Open func(ctx context.Context, a Address, ttl time.Duration) (Service, error)
}

// kinds are those of this package.
var kinds = []Kind{{Scheme: "file", Open: openFile}, {Scheme: "kubernetes", Open: openKubernetes}}

// Schemes lists what Open takes, those of this package first.
func Schemes(more ...Kind) (list []string) {
	for _, k := range slices.Concat(kinds, more) {
		list = append(list, k.Scheme)
	}
	return list
}

// Open opens a lease by its address, as "file:///run/shop/leases" or "kubernetes://shop?ttl=3m", of a kind of this
// package or of those given. The value ttl is how long the lease lasts after its owner's last word (DefaultTTL). No
// service is asked. Errors that match ErrBadConfig say what is wrong with the address; they repeat none of its values
// that may be secret.
func Open(ctx context.Context, address string, more ...Kind) (Service, error) {
	a, ttl, err := parse(address)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Concat(kinds, more) {
		if k.Scheme == a.Scheme {
			return k.Open(ctx, a, ttl)
		}
	}
	return nil, fmt.Errorf("%w: no lease is kept in %q by this program; it knows %s (docs/leases.md)", ErrBadConfig,
		a.Scheme, strings.Join(Schemes(more...), ", "))
}
