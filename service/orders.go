// Orders: the admin interface has a node go over to another cluster.

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kith-io/kith"
)

// order makes the node of a process go over to the cluster of the seeds.
type order struct {
	seeds []string
	leave bool       // one in company too, which leaves first
	done  chan error // gets what came of it; with leave, that the order is taken
}

// orders is where they come in.
type orders chan order

// join orders a node that is alone to go over, and waits for what comes of it.
func (o orders) join(ctx context.Context, seeds []string) error { return o.give(ctx, seeds, false) }

// leave orders a node to leave and go over.
func (o orders) leave(ctx context.Context, seeds []string) error { return o.give(ctx, seeds, true) }

func (o orders) give(ctx context.Context, seeds []string, leave bool) error {
	over := order{seeds, leave, make(chan error, 1)}
	select {
	case o <- over:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-over.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// goesOver carries out an order; nil: the node stays, or has ended.
func goesOver(ctx context.Context, node *kith.Node, o order) (*kith.Node, error) {
	if o.leave {
		o.done <- nil
		return node.LeaveAndJoin(ctx, o.seeds)
	}
	next, err := node.JoinCluster(ctx, o.seeds)
	o.done <- err
	return next, err
}

// goesBack starts the next node of one that has ended as the younger of two clusters: it joins the older one. Nil: it
// has ended otherwise, or there is none.
func goesBack(ctx context.Context, node *kith.Node, log *slog.Logger) *kith.Node {
	e := (*kith.EndedError)(nil)
	if !errors.As(node.Err(), &e) || e.Kind != kith.EndDuplicate || len(e.Seeds) == 0 {
		return nil
	}
	<-node.ShutdownDone()
	next, err := node.JoinCluster(ctx, e.Seeds)
	if err != nil {
		log.Warn("does not go over to the older cluster", "event", "node-stays", "error", err)
		return nil
	}
	log.Warn("goes over to the older cluster of this name", "event", "node-goes-over", "node", node.ID().String(), "next",
		next.ID().String(), "seeds", fmt.Sprint(e.Seeds), "why", e.Reason)
	return next
}

// comesBack starts the node that follows one which the cluster has ended; nil: none is to follow. The end of ctx ends
// that.
func comesBack(ctx context.Context, node *kith.Node) *kith.Node {
	for ctx.Err() == nil {
		next, err := kith.Rejoin(ctx, node)
		if err == nil {
			return next
		}
		if errors.Is(err, kith.ErrNoRejoin) {
			break
		}
	}
	return nil
}
