// The end of kith dev: the senders stop, what is in flight is awaited and counted at the entities, the nodes leave.

package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// settle stops the senders, waits for what is in flight, and fills the summary from what the entities noted.
func (d *dev) awaitShards(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*fleet.DrainLimit)
	defer cancel()
	all, err := d.status(ctx)
	if err != nil {
		return err
	}
	d.sum.Up = d.cmd.Nodes
	for _, s := range all {
		if d.sum.ShardsPerNode = append(d.sum.ShardsPerNode, s.Shards); !s.Left {
			d.sum.Up = min(d.sum.Up, s.Up)
		}
	}
	stopped, err := fleet.Ask[stopReply](ctx, d.nodes, "stop", cli.None{})
	if err != nil {
		return err
	}
	d.sum.SendSeconds = cli.Seconds(d.began)
	sent, err := d.gather(stopped)
	if err != nil {
		return err
	}
	if err := fleet.Drain(ctx, ledger.Compare(sent).Sent, d.progress, d.delivered); err != nil {
		return err
	}
	reports, err := fleet.Ask[ledger.Report](ctx, d.nodes, "report", cli.None{})
	if err != nil {
		return err
	}
	if err := d.countMoves(ctx); err != nil {
		return err
	}
	t := ledger.Compare(sent, reports...)
	d.sum.Sent, d.sum.Delivered, d.sum.Lost = t.Sent, t.Delivered, t.Lost
	d.sum.Reordered, d.sum.Duplicated, d.foreign = t.Reordered, t.Duplicated, t.Foreign
	d.sum.Rate = float64(int64(float64(t.Sent) / max(d.sum.SendSeconds, 0.001)))
	return nil
}

// countMoves adds up the moves that the nodes have led. Another build may not know of any, and then none began.
func (d *dev) countMoves(ctx context.Context) error {
	if d.cmd.Old != "" {
		return nil
	}
	moves, err := fleet.Ask[movesReply](ctx, d.nodes, "moves", cli.None{})
	for _, m := range moves {
		d.sum.Moves += m.Done
	}
	return err
}

// gather merges what the senders of all nodes did, and their latencies.
func (d *dev) gather(stopped []stopReply) (ledger.SentCounts, error) {
	sent, latency := ledger.SentCounts{}, fleet.NewTimes()
	for i, s := range stopped {
		maps.Copy(sent, s.Sent)
		d.sum.Asks += s.Asks
		d.sum.AskErrors += s.AskErrors
		if s.FirstErr != "" {
			d.progress.Printf("%s  first failed ask: %s", d.nodes[i].Name(), s.FirstErr)
		}
		if len(s.Latency) == 0 {
			continue
		}
		if err := fleet.AddTimes(latency, s.Latency); err != nil {
			return nil, fmt.Errorf("latencies of %s: %w", d.nodes[i].Name(), err)
		}
	}
	if latency.TotalCount() > 0 {
		d.sum.AskP50 = float64(latency.ValueAtQuantile(50)/100) / 10 // tenths of a microsecond
		d.sum.AskP99 = float64(latency.ValueAtQuantile(99)/100) / 10
	}
	return sent, nil
}

// delivered returns how many messages have come.
func (d *dev) delivered(ctx context.Context) (came uint64, err error) {
	all, err := d.status(ctx)
	for _, s := range all {
		came += s.Delivered
	}
	return came, err
}

// leave lets the nodes leave one after another, the last that came first, and ends their processes.
func (d *dev) leave(ctx context.Context) error {
	begin := time.Now()
	var errs []error
	for i := len(d.nodes) - 1; i >= d.sum.Left; i-- {
		node, one := d.nodes[i], time.Now()
		if err := node.CallWithin(ctx, leaveLimit, "leave", cli.None{}, nil); err != nil {
			errs = append(errs, err)
			continue
		}
		d.progress.Printf("%s  left after %.1f s", node.Name(), cli.Seconds(one))
	}
	errs = append(errs, fleet.Close(d.nodes))
	d.sum.LeaveSeconds = cli.Seconds(begin)
	return errors.Join(errs...)
}
