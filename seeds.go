// Seeds: a node whose contact points are found after it has started.

package kith

import (
	"context"
	"crypto/tls"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// DefaultName is the name of a cluster whose Config gives none.
const DefaultName = driver.DefaultName

// UseSeeds gives seeds, host:port, to a node that is in no cluster, in the meaning of Config.Seeds: the first that
// answers admits it, and when this node's own address heads the list it forms the cluster if no other is in one. Later
// calls add seeds in front of the earlier ones. Errors: ErrJoined, ErrSeedsOverridden when JoinCluster has given it
// others, a seed that is no address, more than 256 of them, and the *EndedError of a node that has ended.
func (n *Node) UseSeeds(ctx context.Context, seeds []string) error {
	return driver.UseSeeds(ctx, n.d, seeds, false)
}

// Told returns the seeds that JoinCluster gave this node, the latest ones; nil: none. Whatever else looks for seeds can
// stop. The slice is the caller's.
func (n *Node) Told() []string { return driver.Told(n.d) }

// LastCluster returns the id of the cluster that this node's Directory remembered when it started, zero for none.
func (n *Node) LastCluster() uint64 { return driver.LastCluster(n.d) }

// TLSConfigs returns configurations for connections beside those of the members, both of whose ends are to be nodes of
// this cluster: for a server, and for a client of a server at a host. They follow Config.TLS, also when certificates
// are replaced, and ask both ends for one. Without TLS both are nil.
func (n *Node) TLSConfigs() (server *tls.Config, client func(host string) *tls.Config) {
	return driver.TLSConfigs(n.d)
}
