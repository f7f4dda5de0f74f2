// How kith run finds its cluster where no seeds are given: discovery and bootstrap.

package command

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/cli"
)

// findFlags say where contact points are looked for, and when a cluster is formed with them.
type findFlags struct {
	Discovery          string        `enum:",static,file,dns,srv,kubernetes" default:"" help:"${discovery_help}"`
	DiscoveryTargets   []string      `help:"static: contact points, host or host:port."`
	DiscoveryFile      string        `placeholder:"FILE" help:"file: a contact point a line; it is read at each look-up."`
	DiscoveryName      string        `help:"dns: the name whose addresses are looked up; srv: the domain of the service."`
	DiscoveryService   string        `help:"srv: the service, as in _SERVICE._tcp.NAME."`
	DiscoveryServer    string        `help:"dns, srv: the DNS server to ask, host:port; none: those of the machine."`
	DiscoverySelector  string        `help:"kubernetes: the labels of the pods, such as app=orders."`
	DiscoveryNamespace string        `help:"kubernetes: the namespace of the pods; none: this pod's."`
	DiscoveryPortName  string        `help:"kubernetes: the name of the contact point's container port."`
	Contact            string        `default:"127.0.0.1:7627" help:"${contact_help}"`
	ContactAdvertise   string        `help:"Address under which others reach the contact point, if not the node's host."`
	Expected           int           `default:"0" help:"${expected_help}"`
	Required           int           `default:"0" help:"${required_help}"`
	Margin             time.Duration `default:"5s" help:"How long look-ups must show the same before a cluster is formed."`
	FormNewCluster     bool          `default:"true" negatable:"" help:"${formcluster_help}"`
	SomeMayBeSilent    bool          `help:"Form a cluster though contact points that were found do not answer."`
	BootstrapTimeout   time.Duration `default:"60s" help:"End, with code 6, when in no cluster by then; 0: never."`
}

// method returns the method that was chosen.
func (f *findFlags) method() (discovery.Discovery, error) {
	switch f.Discovery {
	case "static":
		return discovery.Static(f.DiscoveryTargets...)
	case "file":
		return discovery.File(f.DiscoveryFile)
	case "dns":
		return discovery.DNS(discovery.DNSConfig{Name: f.DiscoveryName, Server: f.DiscoveryServer})
	case "srv":
		if f.DiscoveryService == "" {
			return nil, errors.New("--discovery=srv needs --discovery-service")
		}
		return discovery.DNS(discovery.DNSConfig{Name: f.DiscoveryName, Service: f.DiscoveryService,
			Server: f.DiscoveryServer})
	}
	return discovery.Kubernetes(discovery.KubernetesConfig{Selector: f.DiscoverySelector,
		Namespace: f.DiscoveryNamespace, PortName: f.DiscoveryPortName})
}

// bootstrap returns the configuration of the search.
func (f *findFlags) bootstrap(log *slog.Logger) (bootstrap.Config, error) {
	d, err := f.method()
	cfg := bootstrap.Config{Discovery: d, Listen: f.Contact, Advertise: f.ContactAdvertise, Expected: f.Expected,
		Required: f.Required, Margin: f.Margin, NeverForm: !f.FormNewCluster, SomeMayBeSilent: f.SomeMayBeSilent,
		Timeout: f.BootstrapTimeout, Logger: log}
	if f.BootstrapTimeout == 0 {
		cfg.Timeout = -1
	}
	return cfg, err
}

// valueFaults returns which values are none whatever they are for, or nil.
func (f *findFlags) valueFaults() error {
	errs := cli.Faults{cli.Address("--contact", f.Contact)}
	for flag, value := range map[string]string{"--contact-advertise": f.ContactAdvertise,
		"--discovery-server": f.DiscoveryServer} {
		if value != "" {
			errs = append(errs, cli.Address(flag, value))
		}
	}
	errs.Must(f.Margin >= time.Millisecond && f.Margin <= time.Hour, "--margin is %v, must be 1ms to 1h", f.Margin)
	errs.Must(f.BootstrapTimeout >= 0, "--bootstrap-timeout is negative")
	return errs.Err()
}

// findFaults returns what is wrong with them for a node of that configuration, or nil.
func (f *findFlags) findFaults(node kith.Config) error {
	if err := f.valueFaults(); err != nil {
		return errors.Join(err, node.Validate())
	}
	if f.Discovery == "" {
		var without []string
		for name, given := range map[string]bool{"--discovery-targets": len(f.DiscoveryTargets) > 0,
			"--discovery-file": f.DiscoveryFile != "", "--discovery-name": f.DiscoveryName != "",
			"--discovery-selector": f.DiscoverySelector != "", "--expected": f.Expected != 0,
			"--required": f.Required != 0} {
			if given {
				without = append(without, name)
			}
		}
		if len(without) > 0 {
			slices.Sort(without)
			return fmt.Errorf("without --discovery there is no use for %s", strings.Join(without, ", "))
		}
		return node.Validate()
	}
	cfg, err := f.bootstrap(nil)
	if err != nil {
		return err
	}
	return cli.About(cfg.Validate(node), bootstrap.ErrBadConfig, "Listen", "--contact", "Advertise", "--contact-advertise",
		"Expected", "--expected", "Required", "--required")
}
