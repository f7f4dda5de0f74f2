// Seeds: what the finder of contact points tells a node, and what it asks of it.

package driver

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// UseSeeds gives seeds to a node that is in no cluster; they were found or, if told is set, are an operator's.
func UseSeeds(ctx context.Context, d *Driver, seeds []string, told bool) error {
	c := membership.SeedsCommand{Told: told}
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
	if told {
		own := slices.Clone(seeds)
		d.told.Store(&own)
	}
	return nil
}

// Told returns the seeds of an operator, nil for none.
func Told(d *Driver) []string {
	if seeds := d.told.Load(); seeds != nil {
		return slices.Clone(*seeds)
	}
	return nil
}

// LastCluster returns the id of the cluster that this node's record named when it started, zero for none.
func LastCluster(d *Driver) uint64 { return d.lastCluster }

// TLSConfigs returns what protects connections that are none of the members' own; see kith.Node.TLSConfigs.
func TLSConfigs(d *Driver) (server *tls.Config, client func(host string) *tls.Config) {
	return d.wires.TLSConfigs()
}
