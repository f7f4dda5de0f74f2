// How a node, or each node of a cluster, goes over to another cluster.

package operate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// Join is the verb that has a node go over to another cluster.
type Join struct {
	Asked
	Seeds []string      `arg:"" help:"Members of that cluster, host:port: their nodes' addresses, not their admin interfaces."`
	Leave bool          `help:"The node is in company: it leaves first, and what it hosts moves to those that stay."`
	All   []string      `placeholder:"ADMIN" help:"${joinall_help}"`
	Each  time.Duration `default:"2m" help:"--all: how long one node may take to leave and to be up in the other cluster."`
}

// Validate is called by the parser.
func (c *Join) Validate() error {
	errs := []error{c.Asked.Validate()}
	if c.Each <= 0 {
		errs = append(errs, errors.New("--each must be more than zero"))
	}
	if c.Leave && len(c.All) > 0 {
		errs = append(errs, errors.New("--leave is for one node; with --all each leaves"))
	}
	for _, at := range c.All {
		errs = append(errs, interfaceAt("--all", at))
	}
	return errors.Join(errs...)
}

// Run orders the node to join the other cluster; its process goes on there. What the node hosts stops, or moves to its
// old cluster with --leave. With --all each node of its cluster gets the order, one after the other.
func (c *Join) Run(to *Console) error {
	q := url.Values{"seeds": c.Seeds}
	if len(c.All) > 0 {
		return c.all(to, q)
	}
	if c.Leave {
		q.Set("leave", "true")
	}
	return c.order(to, "/v1/join?"+q.Encode())
}

// goer is one node of a cluster that goes over.
type goer struct {
	Asked
	addr string
	old  string // the cluster that it leaves
}

// all gives the order to each node by its admin interface, where that is named. Before the first one leaves, it makes
// sure that these are all members: one that is not named would stay behind.
func (c *Join) all(to *Console, q url.Values) error {
	goers, err := c.goers(to)
	if err != nil {
		return err
	}
	q.Set("leave", "true")
	for i, g := range goers {
		var d struct{ Message string }
		if _, err := g.send("POST", "/v1/join?"+q.Encode(), &d); err != nil {
			return fmt.Errorf("%s stays, and so do all behind it: %w", g.addr, err)
		}
		cluster, err := g.await(time.Now().Add(c.Each))
		if err != nil {
			return fmt.Errorf("%s is not up in another cluster within %v (%w): it may come still, look at its log; all "+
				"behind it stay", g.addr, c.Each, err)
		}
		if c.JSON {
			fmt.Fprintf(to.Out, "{\"node\":%q,\"cluster\":%q,\"gone\":%d,\"of\":%d}\n", g.addr, cluster, i+1, len(goers))
			continue
		}
		fmt.Fprintf(to.Out, "%d of %d: %s is up in cluster %s\n", i+1, len(goers), cli.OneLine(g.addr), cli.OneLine(cluster))
	}
	return nil
}

// goers returns the nodes behind the admin interfaces, which must be all members of one cluster.
func (c *Join) goers(to *Console) ([]goer, error) {
	var goers []goer
	var first membersAnswer
	var named []string
	for i, at := range c.All {
		g := goer{Asked: c.Asked}
		g.Admin, g.JSON = at, false
		var m membersAnswer
		if err := g.ask(to, "GET", "/v1/members", &m); err != nil {
			return nil, fmt.Errorf("--all=%s: nobody has gone over: %w", at, err)
		}
		if i == 0 {
			first = m
		}
		g.addr, _, _ = strings.Cut(m.Self, "#")
		g.old = m.Cluster
		if m.Cluster != first.Cluster {
			return nil, fmt.Errorf("--all=%s: %s is of cluster %s, %s of %s: nobody has gone over", at, cli.OneLine(g.addr),
				cli.OneLine(m.Cluster), cli.OneLine(goers[0].addr), cli.OneLine(first.Cluster))
		}
		if !slices.Contains(named, g.addr) {
			goers, named = append(goers, g), append(named, g.addr)
		}
	}
	for _, m := range first.Members {
		if !slices.Contains(named, m.Addr) {
			return nil, fmt.Errorf("%s is a member, and its admin interface is not among --all: nobody has gone over",
				cli.OneLine(m.Addr))
		}
	}
	if i := slices.IndexFunc(c.Seeds, func(s string) bool { return slices.Contains(named, s) }); i >= 0 {
		return nil, fmt.Errorf("the seed %s is of the cluster that is to go over", c.Seeds[i])
	}
	return goers, nil
}

// await waits until the node is up in another cluster, and returns that one's id.
func (g *goer) await(deadline time.Time) (cluster string, err error) {
	const every = 200 * time.Millisecond
	for {
		var m membersAnswer
		if _, err = g.get("/v1/members", &m); err == nil {
			err = errors.New("it is still in the cluster that it leaves")
		}
		for _, mb := range m.Members {
			if m.Cluster == g.old || mb.Addr != g.addr {
				continue
			}
			if mb.Status == "up" {
				return m.Cluster, nil
			}
			err = fmt.Errorf("it is %s there", cli.OneLine(mb.Status))
		}
		if time.Until(deadline) < every {
			return "", err
		}
		time.Sleep(every)
	}
}
