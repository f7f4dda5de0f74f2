// loadgen serve: a node that hosts the entities of loadgen run --target, on this machine or another.

package main

import (
	"context"
	"errors"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// protectFlags say how a node that others reach is protected.
type protectFlags struct {
	TLSCert  string `name:"tls-cert" type:"path" placeholder:"FILE" help:"${tlscert_help}"`
	TLSKey   string `name:"tls-key" type:"path" placeholder:"FILE" help:"Its private key, PEM."`
	TLSCA    string `name:"tls-ca" type:"path" placeholder:"FILE" help:"Certificates of believed authorities, PEM."`
	Insecure bool   `help:"Allow a listen address that is not loopback without TLS."`
}

func (p protectFlags) files() fleet.Files {
	return fleet.Files{Cert: p.TLSCert, Key: p.TLSKey, CA: p.TLSCA}
}

// serveCmd is the flags of loadgen serve.
type serveCmd struct {
	Listen  string   `default:"127.0.0.1:7356" help:"Address to listen on, host:port; port 0 takes a free loopback port."`
	Seeds   []string `placeholder:"HOST:PORT" help:"Other nodes to share the entities with; none: this one alone."`
	Cluster string   `default:"loadgen" help:"Name of the cluster."`
	Shards  uint32   `default:"100" help:"Shards of each type, 1 to 1048576; the same at all nodes and senders."`
	protectFlags
	PollFor time.Duration `default:"0s" help:"${poll_help}"`
	cli.StatsFlags
}

// Validate is called by the parser: all faults at once, before anything starts.
func (c *serveCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	errs = append(errs, c.Faults()...)
	cfg := kith.Config{Name: c.Cluster, Listen: c.Listen, Seeds: c.Seeds, TLS: c.files().TLS(), Insecure: c.Insecure,
		PollFor: c.PollFor}
	return errors.Join(append(errs, cfg.Validate())...)
}

// serving is the line that is printed when the node is up.
type serving struct {
	Addr    string `json:"addr"`
	Cluster string `json:"cluster"`
}

// Run starts the node, says where it is, and leaves on a signal.
func (c *serveCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	w := &worker{log: e.Stderr, sinks: map[string]*bench.Sink{}, regions: map[string]*kith.Region{}}
	w.report, w.timed = cli.NewReporter(e.Stderr), c.LatencyEvery
	at, err := w.start(ctx, startArgs{Name: c.Cluster, Listen: c.Listen, Seeds: c.Seeds, Host: true, Shards: c.Shards,
		TLS: c.files(), Insecure: c.Insecure, Poll: c.PollFor})
	if w.node.Node != nil {
		defer w.node.Close()
	}
	if err != nil {
		return err
	}
	go w.report.Run(ctx, w.node.Node, c.StatsEvery)
	if err := w.node.Ready(ctx); err != nil {
		return err
	}
	if err := cli.Line(e.Stdout, "serving", serving{at.Addr, c.Cluster}); err != nil {
		return err
	}
	select {
	case <-w.node.Done():
		return w.node.Err()
	case <-ctx.Done():
	}
	bye, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	return w.node.Leave(bye)
}
