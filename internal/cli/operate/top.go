// kith top: what nodes do, looked at again and again.

package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// maxTop bounds how many nodes are looked at.
const maxTop = 64

// Top is the verb that shows what nodes do.
type Top struct {
	Asked
	Nodes  []string      `arg:"" optional:"" help:"Admin interfaces of the nodes to look at; none: the one of --admin."`
	Every  time.Duration `default:"2s" help:"How often to look, at least 100ms."`
	Rounds int           `help:"End after so many looks; 0: never."`
}

// Validate is called by the parser.
func (c *Top) Validate() error {
	errs := cli.Faults{c.Asked.Validate()}
	errs.Must(c.Every >= 100*time.Millisecond, "--every must be at least 100ms")
	errs.Must(c.Rounds >= 0, "--rounds is negative")
	for _, n := range c.Nodes {
		errs = append(errs, interfaceAt("nodes", n))
	}
	errs.Must(len(c.Nodes) <= maxTop, "%d nodes, at most %d", len(c.Nodes), maxTop)
	return errs.Err()
}

// topRow is one node at one look. What is not known is absent.
type topRow struct {
	Node       string   `json:"node"`
	Error      string   `json:"error,omitempty"`
	State      string   `json:"state,omitempty"`
	Members    float64  `json:"members"`
	Lost       float64  `json:"unreachable"`
	Shards     float64  `json:"shards"`
	Entities   float64  `json:"entities"`
	Waiting    float64  `json:"waiting_bytes"` // in mailboxes, on links, and for the homes of shards
	Handled    *float64 `json:"handled_per_s,omitempty"`
	Refused    *float64 `json:"refused_per_s,omitempty"`
	AskP50     *float64 `json:"ask_p50_us,omitempty"`
	AskP99     *float64 `json:"ask_p99_us,omitempty"`
	HandlerP99 *float64 `json:"handler_p99_us,omitempty"`
}

// Run looks until a signal comes, or --rounds are over. When no node answers the first look, that is an error.
func (c *Top) Run(to *Console) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	nodes := c.Nodes
	if len(nodes) == 0 {
		nodes = []string{c.Admin}
	}
	before, err := c.look(ctx, nodes)
	if err != nil {
		return err
	}
	if to.Clear != nil && !c.JSON { // a person sees something at once, without rates
		if err := c.show(to, nodes, before, before); err != nil {
			return err
		}
	}
	for n := 0; c.Rounds == 0 || n < c.Rounds; n++ {
		if !cli.Pause(ctx, c.Every) {
			return nil
		}
		now, _ := c.look(ctx, nodes)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.show(to, nodes, before, now); err != nil {
			return err
		}
		before = now
	}
	return nil
}

// looked is what came of asking one node.
type looked struct {
	*sample
	err error
}

// look asks all nodes at once. Its error is that of the first, when none answers.
func (c *Top) look(ctx context.Context, nodes []string) ([]looked, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	all := make([]looked, len(nodes))
	var wait sync.WaitGroup
	for i, node := range nodes {
		wait.Go(func() {
			one := c.Asked
			one.Admin = node
			all[i].sample, all[i].err = one.sampled(ctx)
		})
	}
	wait.Wait()
	for _, l := range all {
		if l.err == nil {
			return all, nil
		}
	}
	return all, all[0].err
}

func rowOf(node string, before, now looked) topRow {
	r := topRow{Node: node}
	if now.err != nil {
		r.Error = now.err.Error()
		return r
	}
	r.State, r.Members, r.Lost = now.state(), now.sum("kith_members"), now.sum("kith_members_unreachable")
	r.Shards, r.Entities = now.sum("kith_shards"), now.sum("kith_entities")
	r.Waiting = now.sum("kith_type_mailbox_bytes") + now.sum("kith_queued_bytes") + now.sum("kith_parked_bytes")
	if before.err != nil || !before.at.Before(now.at) {
		return r
	}
	rate := func(name string) *float64 { v := now.rate(before.sample, name); return &v }
	r.Handled, r.Refused = rate("kith_handled_total"), rate("kith_refused_total")
	quantile := func(name string, q float64) *float64 {
		d, some := now.quantile(before.sample, name, q)
		if !some {
			return nil
		}
		v := float64(d) / float64(time.Microsecond)
		return &v
	}
	r.AskP50, r.AskP99 = quantile("kith_ask_seconds", 0.5), quantile("kith_ask_seconds", 0.99)
	r.HandlerP99 = quantile("kith_handler_seconds", 0.99)
	return r
}

func (c *Top) show(to *Console, nodes []string, before, now []looked) error {
	list := make([]topRow, len(nodes))
	for i, node := range nodes {
		list[i] = rowOf(node, before[i], now[i])
	}
	if c.JSON {
		return json.NewEncoder(to.Out).Encode(map[string]any{"at": time.Now().UTC(), "nodes": list})
	}
	if to.Clear != nil {
		to.Clear()
	}
	rows := [][]string{{"NODE", "STATE", "MEMBERS", "LOST", "SHARDS", "ENTITIES", "MSG/S", "REFUSED/S", "WAITING",
		"ASK P50", "ASK P99", "HANDLER P99"}}
	number := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	rate := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return number(*v)
	}
	micros := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return time.Duration(*v * float64(time.Microsecond)).String()
	}
	for _, r := range list {
		if r.Error != "" {
			rows = append(rows, []string{r.Node, "no answer"})
			continue
		}
		rows = append(rows, []string{r.Node, r.State, number(r.Members), number(r.Lost), number(r.Shards),
			number(r.Entities), rate(r.Handled), rate(r.Refused), number(r.Waiting), micros(r.AskP50), micros(r.AskP99),
			micros(r.HandlerP99)})
	}
	return cli.Table(to.Out, rows...)
}
