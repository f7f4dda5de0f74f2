// A node with a contact point of its own, for measurements.

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
)

// contactOf is where a worker's own contact point is found: by itself, once it is there.
type contactOf struct {
	at atomic.Pointer[discovery.Discovery]
}

// Lookup returns it.
func (c *contactOf) Lookup(ctx context.Context) ([]discovery.Target, error) {
	if at := c.at.Load(); at != nil {
		return (*at).Lookup(ctx)
	}
	return nil, errors.New("it is being opened")
}

// find starts a node that forms a cluster of its own and has a contact point, and returns the address of that.
func find(ctx context.Context, cfg kith.Config) (*kith.Node, string, error) {
	own := &contactOf{}
	b, err := bootstrap.Start(ctx, cfg, bootstrap.Config{Listen: "127.0.0.1:0", Expected: 1, Required: 1,
		Margin: 10 * time.Millisecond, Discovery: own})
	if err != nil {
		return nil, "", err
	}
	at, err := discovery.Static(b.ContactPoint())
	own.at.Store(&at)
	return b.Node(), b.ContactPoint(), err
}
