// Seeds: what a node is told by whoever finds its contact points, and what that one asks of it.

package driver

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// UseSeeds gives seeds to a node that is in no cluster; see the face.
func UseSeeds(ctx context.Context, d *Driver, seeds []string) error {
	var c membership.SeedsCommand
	for _, s := range seeds {
		a, err := peer.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("kith: seed: %w", err)
		}
		c.Seeds = append(c.Seeds, a)
	}
	if err := d.call(ctx, c); err != nil {
		return fmt.Errorf("kith: seeds: %w", err)
	}
	return nil
}

// LastCluster returns the id of the cluster that this node's record named when it started, zero for none.
func LastCluster(d *Driver) uint64 { return d.lastCluster }

// TLSConfigs returns what protects connections that are none of the members' own; see the face.
func TLSConfigs(d *Driver) (server *tls.Config, client func(host string) *tls.Config) {
	return d.wires.TLSConfigs()
}
