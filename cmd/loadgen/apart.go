// The throughput of processes with a core each, beside that of processes that share all cores.

package main

import (
	"context"

	"github.com/kith-io/kith/bench"
)

// apart is the placement in which throughput is measured a second time: one core each, and so one thread that runs Go
// code each. Where processes share fewer cores than they have busy threads, the kernel lets what wakes up interrupt
// what runs, and the figures say more of that than of the code.
const apart = "_p2"

// namesApart are the names of measuresApart.
var namesApart = []string{"bulk" + apart, "tell inline" + apart, "tell worker" + apart, "ask256" + apart,
	"ask256 by callback" + apart}

// measuresApart are the throughput measures between the processes of c.
func (r *rounds) measuresApart(c *crew) []measure {
	all := []measure{{namesApart[0], func(ctx context.Context, f bench.Figures) error {
		return r.bulk(ctx, f, c, apart)
	}}}
	for i, exec := range []string{"inline", "worker"} {
		all = append(all, measure{namesApart[1+i], func(ctx context.Context, f bench.Figures) error {
			if _, ok := f["bulk_gbps"+apart]; !ok { // its baseline, left out by --only
				if err := r.bulk(ctx, f, c, apart); err != nil {
					return err
				}
			}
			return r.tell(ctx, f, c, exec, apart)
		}})
	}
	for i, mode := range []bench.Mode{bench.Ask, bench.AskFunc} {
		all = append(all, measure{namesApart[3+i], func(ctx context.Context, f bench.Figures) error {
			return r.ask256(ctx, f, c, mode, apart)
		}})
	}
	return all
}
