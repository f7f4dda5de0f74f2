// Apart: what nodes that join cost by themselves, and what the moves cost, one after the other.

package rolling

import (
	"context"
	"time"
)

// joinApart starts the processes that join while the balance is paused, and measures; then it lets shards move, and
// waits until all are even. It returns when they were let.
func (s *ScaleConfig) joinApart(ctx context.Context, c *crew, r *Scaled, late *naps, began time.Duration) (
	moved time.Duration, err error) {
	if err := c.all[0].Call(ctx, "pause", true, nil); err != nil {
		return 0, err
	}
	for _, p := range c.all[s.From:s.Nodes] {
		if err := c.start(ctx, p); err != nil {
			return 0, err
		}
	}
	if err := c.complete(ctx, joinLimit); err != nil {
		return 0, err
	}
	r.Up = (c.clock.Now() - began).Seconds()
	joining, err := c.lap(ctx, c.all)
	if err != nil {
		return 0, err
	}
	joined, err := c.over(ctx, s.Steady, late)
	if err != nil {
		return 0, err
	}
	r.Apart = &Apart{p99(joining), p99(joined)}
	moved = c.clock.Now()
	if err := c.all[0].Call(ctx, "pause", false, nil); err != nil {
		return 0, err
	}
	r.Hosted, err = c.until(ctx, evenAmong(r.Used), nil)
	return moved, err
}
