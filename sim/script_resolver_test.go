// What scripts say about the resolver: its settings, the survivors, and a lease that some cannot reach.

package sim

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
)

// resolver=strategy[,role=name][,quorum=n][,stable=7s][,unstable=4s|never][,keepalone][,hold=3s]; a script without it
// has none.
func (s *script) resolver(r *node.Resolver, value string) {
	parts := strings.Split(value, ",")
	require.NoError(s.t, r.Strategy.UnmarshalText([]byte(parts[0])))
	for _, p := range parts[1:] {
		key, v, _ := strings.Cut(p, "=")
		switch key {
		case "role":
			r.Role = v
		case "quorum":
			r.QuorumSize = s.number(v)
		case "stable":
			r.StableAfter = s.duration(v)
		case "unstable":
			if r.UnstableAfter = -1; v != "never" {
				r.UnstableAfter = s.duration(v)
			}
		case "keepalone":
			r.KeepAlone = true
		case "hold":
			r.LeaseHold = s.duration(v)
		default:
			require.Fail(s.t, "unknown setting of the resolver: "+p)
		}
	}
	require.NoError(s.t, r.Validate())
}

// survivors: the nodes that live and were not stopped.
func (s *script) survivors([]string) {
	var names []string
	for _, p := range s.w.Survivors() {
		names = append(names, s.w.Name(p.ID))
	}
	s.printf("alive: %v", names)
}

// nolease n...: these hosts reach no lease.
func (s *script) noLease(args []string) {
	for _, a := range args {
		s.w.Lease.Away = append(s.w.Lease.Away, s.number(a)-1)
	}
}

// lease: its owner, and how often it was taken.
func (s *script) leaseOwner([]string) {
	s.printf("the lease is with %s, taken %d times", s.w.Name(s.w.Lease.Owner), s.w.Lease.Taken)
}
