// An example of a lease in files: what the node of a second process hears.

package lease_test

import (
	"context"
	"fmt"
	"os"

	"github.com/kith-io/kith/lease"
)

// Two processes of one machine ask for the same lease. kith.Config.Lease and kith.SingletonLease.Service take one.
func Example() {
	dir, err := os.MkdirTemp("", "leases")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for _, owner := range []string{"one", "two"} {
		l, err := lease.Open(ctx, "file://"+dir+"?ttl=1m")
		if err != nil {
			panic(err)
		}
		defer l.Close()
		fmt.Println(l.Acquire(ctx, "shop-resolver", owner))
	}
	// Output:
	// true <nil>
	// false <nil>
}
