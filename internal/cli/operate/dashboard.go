// kith dashboard: one page for several nodes, from their admin interfaces.

package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
)

// Dashboard is the verb that serves one page for several nodes.
type Dashboard struct {
	Nodes    []string `arg:"" help:"Admin interfaces to show: host:port or a URL, NAME=ADDRESS to give one a name."`
	Listen   string   `default:"127.0.0.1:0" help:"Address to serve the page on, host:port; port 0 takes a free one."`
	Hosts    []string `help:"Names by which the page may be asked for on loopback, beside IP addresses and localhost."`
	Insecure bool     `help:"Allow an address that is not loopback: whoever reaches it can read all that is shown."`

	Believed
}

// Validate is called by the parser.
func (c *Dashboard) Validate() error {
	var errs []error
	if len(c.Nodes) > admin.MaxDashboardNodes {
		errs = append(errs, fmt.Errorf("at most %d nodes can be shown", admin.MaxDashboardNodes))
	}
	names := map[string]bool{}
	for _, n := range c.nodes() {
		if names[n.Name] {
			errs = append(errs, fmt.Errorf("%q is named twice", n.Name))
		}
		names[n.Name] = true
	}
	return errors.Join(append(errs, cli.About(c.config(nil).Validate(), admin.ErrBadConfig, "Listen", "--listen", "Hosts",
		"--hosts"))...)
}

// nodes are those of the command line: one without a name is called by its address.
func (c *Dashboard) nodes() []admin.DashboardNode {
	var list []admin.DashboardNode
	for _, text := range c.Nodes {
		name, address, named := strings.Cut(text, "=")
		if !named {
			name, address = text, text
		}
		list = append(list, admin.DashboardNode{Name: name, Address: c.url(address)})
	}
	return list
}

func (c *Dashboard) config(client *http.Client) admin.DashboardConfig {
	list := c.nodes()
	return admin.DashboardConfig{Listen: c.Listen, Insecure: c.Insecure, Hosts: c.Hosts,
		Client: client,
		Nodes:  func() []admin.DashboardNode { return list }}
}

// Run serves the page until a signal.
func (c *Dashboard) Run(to *Console) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	client, err := c.client()
	if err != nil {
		return fmt.Errorf("--ca: %w", err)
	}
	s, err := admin.StartDashboard(c.config(client))
	if err != nil {
		return err
	}
	fmt.Fprintf(to.Out, "dashboard http://%s/\n", s.Addr())
	<-ctx.Done()
	bounded, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Close(bounded)
	return nil
}
