// Cluster: node processes on addresses of loopback that are their own, and what they say of themselves.

package bootruns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The ports are the same at all addresses, as where DNS says nothing of ports.
const (
	memberPort  = 7355
	contactPort = 7627
	adminPort   = 7626
)

// domain is the name that nodes look up.
const domain = "market.test."

// each is how often is looked.
const each = 25 * time.Millisecond

// cluster is the processes of one run.
type cluster struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	net    string // all addresses of this run begin so
	dir    string // of the nodes' records; empty: they keep none
	dns    *Names
	server string // where dns is
	nodes  []*process
}

// process is one node.
type process struct {
	host string
	cmd  *exec.Cmd
	over chan struct{} // it has ended
}

func newCluster(ctx context.Context, o Options, run int) (*cluster, error) {
	dns, server, err := serve()
	if err != nil {
		return nil, err
	}
	// 127.0.0.0/8 is loopback as a whole, on Linux; a part of it that chance picks is this run's own.
	c := &cluster{o: o, dns: dns, server: server, net: fmt.Sprintf("127.%d.%d.", 16+rand.IntN(200), 10*run+rand.IntN(10))}
	c.ctx, c.cancel = context.WithTimeout(ctx, limit)
	return c, nil
}

// names returns the addresses of the nodes first to last.
func (c *cluster) names(first, last int) (list []string) {
	for i := first; i <= last; i++ {
		list = append(list, fmt.Sprint(c.net, i))
	}
	return list
}

// start starts the nodes first to last of a cluster that begins with so many.
func (c *cluster) start(first, last, expected int, more ...string) error {
	for _, host := range c.names(first, last) {
		at := func(port int) string { return fmt.Sprintf("%s:%d", host, port) }
		args := append([]string{"run", "--name=market", "--listen", at(memberPort), "--contact", at(contactPort), "--admin",
			at(adminPort), "--discovery=dns", "--discovery-name", domain, "--discovery-server", c.server, "--expected",
			fmt.Sprint(expected), "--margin", c.o.Margin.String()}, more...)
		if c.dir != "" {
			args = append(args, "--data-dir", filepath.Join(c.dir, host))
		}
		p := &process{host: host, cmd: exec.Command(c.o.Path, args...), over: make(chan struct{})}
		p.cmd.Env = append(os.Environ(), c.o.Env...)
		p.cmd.Stderr = c.o.Logs
		if err := p.cmd.Start(); err != nil {
			return fmt.Errorf("start of %s: %w", host, err)
		}
		c.nodes = append(c.nodes, p)
		go func() {
			_ = p.cmd.Wait() // its code is in ProcessState
			close(p.over)
		}()
	}
	return nil
}

// kill ends all nodes as a power cut does.
func (c *cluster) kill() {
	for _, p := range c.nodes {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range c.nodes {
		<-p.over
	}
	c.nodes = nil
}

// end ends the run.
func (c *cluster) end() {
	c.kill()
	c.cancel()
	_ = c.dns.Close()
}

// wait lets time pass.
func (c *cluster) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// exit waits until a node has ended and returns its code.
func (p *process) exit(ctx context.Context) (int, error) {
	select {
	case <-p.over:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("node %s has not ended: %w", p.host, ctx.Err())
	}
}

// state is what a node says of itself.
type state struct {
	cluster string
	up      int
	ready   bool
}

// await waits until all nodes are Up in one cluster, of nobody else, and returns its id.
func (c *cluster) await() (id string, err error) {
	for {
		one, clusters := true, map[string]bool{}
		for _, p := range c.nodes {
			s := p.seen(c.ctx)
			one = one && s.ready && s.up == len(c.nodes)
			if s.cluster != "" {
				clusters[s.cluster], id = true, s.cluster
			}
		}
		if len(clusters) > 1 {
			return "", fmt.Errorf("%d clusters at one time", len(clusters))
		}
		if one {
			return id, nil
		}
		for _, p := range c.nodes {
			select {
			case <-p.over:
				return "", fmt.Errorf("node %s has ended, %s", p.host, p.cmd.ProcessState)
			default:
			}
		}
		if err := c.wait(each); err != nil {
			return "", errors.Join(fmt.Errorf("no cluster of all %d nodes in time", len(c.nodes)), c.why())
		}
	}
}

// why is what the nodes wait for.
func (c *cluster) why() (err error) {
	for _, p := range c.nodes {
		var e struct{ Hold, Detail string }
		if get(context.Background(), p.host, contactPort, "/bootstrap/v1/explain", &e) == nil {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", p.host, e.Hold, e.Detail))
		}
	}
	return err
}

// seen asks a node; what it does not answer is empty.
func (p *process) seen(ctx context.Context) (s state) {
	var contact struct {
		ClusterID string `json:"cluster_id"`
	}
	var members struct{ Up int }
	if get(ctx, p.host, contactPort, "/bootstrap/v1/contact", &contact) != nil {
		return s
	}
	s.cluster = contact.ClusterID
	if s.cluster != "" && get(ctx, p.host, adminPort, "/v1/members", &members) == nil {
		s.up = members.Up
		s.ready = get(ctx, p.host, adminPort, "/health/ready", nil) == nil
	}
	return s
}

var client = &http.Client{Timeout: 2 * time.Second}

// get asks a node something, over HTTP.
func get(ctx context.Context, host string, port int, path string, v any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d%s", host, port, path), nil)
	if err != nil {
		return err
	}
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case a.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", a.StatusCode)
	case v == nil:
		return nil
	}
	return json.Unmarshal(body, v)
}
