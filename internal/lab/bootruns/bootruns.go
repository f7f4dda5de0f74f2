// Package bootruns starts real node processes that know nobody, with a real DNS server on loopback that does not always
// tell the truth, and counts the clusters that form (BOOT-1 to BOOT-7).
package bootruns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Options say what is run.
type Options struct {
	Path  string   // the program of the node
	Env   []string // beside this process's own
	Cases []string // of Cases; none: all
	// Margin is how long look-ups must show the same; DNS lies for more than twice as long.
	Margin time.Duration
	Log    io.Writer
	Logs   io.Writer // of the nodes; nil: nowhere
}

// Result is what all runs came to. A case that was not run has no figure.
type Result struct {
	Runs     int      `json:"runs"`
	Wrong    int      `json:"clusters_formed_wrong"` // runs that did not end with one cluster of all
	Form3    *float64 `json:"form3_s,omitempty"`     // from the start of the processes until all are Up
	Form5    *float64 `json:"form5_s,omitempty"`
	Form9    *float64 `json:"form9_s,omitempty"`
	Partial  *float64 `json:"partial_s,omitempty"`  // from when DNS tells the truth
	Flapping *float64 `json:"flapping_s,omitempty"` // likewise
	Changed  *float64 `json:"changed_s,omitempty"`  // from the start at new addresses, which DNS does not show at first
	Foreign  *float64 `json:"foreign_s,omitempty"`
	Restart  *float64 `json:"restart_s,omitempty"`
	Records  *float64 `json:"records_s,omitempty"` // the same, of nodes that remember their cluster
	SixDrop  *float64 `json:"names6drop_s,omitempty"`
	Outage   *float64 `json:"outage_s,omitempty"` // a node that is started again, from when DNS answers
	Alone    *int     `json:"alone_exit_code,omitempty"`
	Wall     float64  `json:"wall_seconds"`

	Failures []string `json:"failures,omitempty"`
}

// Cases are the names of what can be run, in their order.
var Cases = []string{"form3", "form5", "form9", "partial", "flapping", "alone", "foreign", "changed", "restart",
	"records", "names6drop", "outage"}

// limit is how long one run may take.
const limit = 90 * time.Second

// lieFor is how long DNS does not tell the truth.
func (c *cluster) lieFor() time.Duration { return 5 * c.o.Margin / 2 }

// Run runs the cases, one after the other.
func Run(ctx context.Context, o Options) (r Result, err error) {
	began := time.Now()
	if len(o.Cases) == 0 {
		o.Cases = Cases
	}
	for i, name := range o.Cases {
		run := runs[name]
		if run == nil {
			return r, fmt.Errorf("no case %q", name)
		}
		fmt.Fprintf(o.Log, "%s ...\n", name)
		c, err := newCluster(ctx, o, i)
		if err != nil {
			return r, err
		}
		err = run(c, &r)
		c.end()
		r.Runs++
		if err != nil {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			r.Wrong++
			r.Failures = append(r.Failures, fmt.Sprintf("%s: %v", name, err))
		}
	}
	r.Wall = time.Since(began).Seconds()
	return r, nil
}

// runs are the cases.
var runs = map[string]func(c *cluster, r *Result) error{
	"form3":    func(c *cluster, r *Result) error { return c.together(3, &r.Form3) },
	"form5":    func(c *cluster, r *Result) error { return c.together(5, &r.Form5) },
	"form9":    func(c *cluster, r *Result) error { return c.together(9, &r.Form9) },
	"partial":  func(c *cluster, r *Result) error { return c.lied(c.dns.partial, &r.Partial) },
	"flapping": func(c *cluster, r *Result) error { return c.lied(c.dns.flapping, &r.Flapping) },
	"alone":    (*cluster).alone,
	"foreign":  (*cluster).foreign,
	"changed":  (*cluster).changed,
	"restart":  func(c *cluster, r *Result) error { return c.restart(&r.Restart) },
	"records":  (*cluster).records,
	"names6drop": func(c *cluster, r *Result) error {
		c.dns.Trouble(DropSix)
		return c.together(3, &r.SixDrop)
	},
	"outage": (*cluster).outage,
}

// together starts nodes at one time and takes the time until all are Up.
func (c *cluster) together(n int, took **float64) error {
	began := time.Now()
	c.dns.set(c.names(1, n)...)
	if err := c.start(1, n, n); err != nil {
		return err
	}
	return c.formed(began, took)
}

// formed waits until all nodes are Up in one cluster.
func (c *cluster) formed(began time.Time, took **float64) error {
	if _, err := c.await(); err != nil {
		return err
	}
	s := time.Since(began).Seconds()
	*took = &s
	return nil
}

// lied has DNS answer otherwise for a while.
func (c *cluster) lied(how func(all []string) ([]string, bool), took **float64) error {
	c.dns.set(c.names(1, 5)...)
	c.dns.lie(how)
	if err := c.start(1, 5, 5); err != nil {
		return err
	}
	if err := c.wait(c.lieFor()); err != nil {
		return err
	}
	c.dns.lie(nil)
	return c.formed(time.Now(), took)
}

// alone starts one node that may only join: it ends by its time limit, and joins when there is a cluster.
func (c *cluster) alone(r *Result) error {
	c.dns.set(c.names(1, 1)...)
	if err := c.start(1, 1, 1, "--no-form-new-cluster", "--bootstrap-timeout=8s"); err != nil {
		return err
	}
	code, err := c.nodes[0].exit(c.ctx)
	if err != nil {
		return err
	}
	if r.Alone = &code; code != 6 {
		return fmt.Errorf("the node ended with code %d, not 6", code)
	}
	c.nodes = nil
	c.dns.set(c.names(2, 4)...)
	if err := c.start(2, 4, 3); err != nil {
		return err
	}
	if _, err := c.await(); err != nil {
		return err
	}
	c.dns.set(c.names(1, 4)...)
	if err := c.start(1, 1, 3, "--no-form-new-cluster"); err != nil {
		return err
	}
	_, err = c.await()
	return err
}

// foreign has DNS show an address at which a node of another cluster is.
func (c *cluster) foreign(r *Result) error {
	c.dns.set(c.names(9, 9)...)
	if err := c.start(9, 9, 1, "--name=another"); err != nil {
		return err
	}
	other, err := c.await()
	if err != nil {
		return err
	}
	stranger := c.nodes
	c.nodes = nil
	c.dns.set(append(c.names(1, 3), c.names(9, 9)...)...)
	began := time.Now()
	if err := c.start(1, 3, 3); err != nil {
		return err
	}
	if err := c.formed(began, &r.Foreign); err != nil {
		return err
	}
	mine := c.nodes[0].seen(c.ctx).cluster
	c.nodes = append(c.nodes, stranger...)
	if s := stranger[0].seen(c.ctx); s.cluster != other || s.up != 1 || mine == other {
		return errors.New("nodes of two names have met in one cluster")
	}
	return nil
}

// changed kills all nodes and starts them at other addresses; DNS shows the old ones for a while, then some of both.
func (c *cluster) changed(r *Result) error {
	var first *float64
	if err := c.together(5, &first); err != nil {
		return err
	}
	c.kill()
	began := time.Now()
	if err := c.start(11, 15, 5); err != nil {
		return err
	}
	if err := c.wait(c.lieFor() / 4); err != nil {
		return err
	}
	c.dns.set(append(c.names(11, 13), c.names(4, 5)...)...)
	if err := c.wait(c.lieFor() / 2); err != nil {
		return err
	}
	c.dns.set(c.names(11, 15)...)
	return c.formed(began, &r.Changed)
}

// restart kills all nodes at one time and starts them where they were.
func (c *cluster) restart(took **float64) error {
	var first *float64
	if err := c.together(3, &first); err != nil {
		return err
	}
	old := c.nodes[0].seen(c.ctx).cluster
	c.kill()
	began := time.Now()
	if err := c.start(1, 3, 3); err != nil {
		return err
	}
	if err := c.formed(began, took); err != nil {
		return err
	}
	if c.nodes[0].seen(c.ctx).cluster == old {
		return errors.New("the cluster of processes that are dead has the same id")
	}
	return nil
}

// records is restart of nodes that remember their cluster: they agree among themselves, and wait for no margin.
func (c *cluster) records(r *Result) (err error) {
	if c.dir, err = os.MkdirTemp("", "kith-bootstrap-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	return c.restart(&r.Records)
}

// outage has DNS fail, and kills the node of the lowest address: those that live stay one cluster, the one that is
// started again forms none of its own, and joins when DNS answers.
func (c *cluster) outage(r *Result) error {
	var first *float64
	if err := c.together(3, &first); err != nil {
		return err
	}
	old := c.nodes[0].seen(c.ctx).cluster
	c.dns.lie(func([]string) ([]string, bool) { return nil, true })
	lowest, others := c.nodes[0], c.nodes[1:]
	c.nodes = []*process{lowest}
	c.kill()
	if err := c.start(1, 1, 3); err != nil {
		return err
	}
	if err := c.wait(c.lieFor()); err != nil {
		return err
	}
	if s := c.nodes[0].seen(c.ctx); s.cluster != "" {
		return fmt.Errorf("a node that could ask nobody is in cluster %s", s.cluster)
	}
	c.dns.lie(nil)
	c.nodes = append(c.nodes, others...)
	if err := c.formed(time.Now(), &r.Outage); err != nil {
		return err
	}
	if c.nodes[0].seen(c.ctx).cluster != old {
		return errors.New("the cluster is another one")
	}
	return nil
}
