// DNS: addresses or service records of a name.

package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/names"
)

// DNSConfig says what DNS looks up. Name is needed.
type DNSConfig struct {
	// Name is the name to look up (A, AAAA), such as that of a headless service; with Service, the domain of the service
	// records.
	Name string
	// Service, if set, looks up the SRV records of _Service._Proto.Name instead, which name hosts and ports.
	Service string
	// Proto is the protocol of the service records; empty means tcp.
	Proto string
	// Port is the port of the contact points of addresses; zero: the caller's own. Service records name their own.
	Port uint16
	// Server is the DNS server that is asked, host:port; empty: those of the machine. The names in service records are
	// then looked up there too, and their addresses are the targets.
	Server string
}

type dns struct {
	DNSConfig
	resolver *net.Resolver
}

// DNS returns a Discovery that looks up a name. That a name has no records is an empty answer; every other failure is
// an error. The resolver of the standard library keeps no answers, so each look-up asks. Errors wrap ErrBadConfig.
func DNS(cfg DNSConfig) (Discovery, error) {
	var errs []error
	if _, err := normal(Target{Host: cfg.Name}); err != nil {
		errs = append(errs, fmt.Errorf("name: %w", err))
	}
	if cfg.Service == "" && cfg.Proto != "" {
		errs = append(errs, errors.New("a protocol without a service"))
	}
	for _, label := range []string{cfg.Service, cfg.Proto} {
		if _, err := normal(Target{Host: label}); label != "" && (err != nil || strings.Contains(label, ".")) {
			errs = append(errs, fmt.Errorf("%q is no label of a service record", cut(label)))
		}
	}
	if cfg.Server != "" {
		if t, err := ParseTarget(cfg.Server); err != nil {
			errs = append(errs, fmt.Errorf("server: %w", err))
		} else if t.Port == 0 {
			errs = append(errs, fmt.Errorf("server %q has no port", cut(cfg.Server)))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: DNS: %w", ErrBadConfig, errors.Join(errs...))
	}
	if cfg.Proto == "" {
		cfg.Proto = "tcp"
	}
	d := &dns{cfg, &net.Resolver{}}
	if cfg.Server != "" {
		var dialer net.Dialer
		d.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, cfg.Server)
		}}
	}
	return d, nil
}

// Lookup asks DNS.
func (d *dns) Lookup(ctx context.Context) ([]Target, error) {
	var list []Target
	var err error
	if d.Service == "" {
		list, err = d.addresses(ctx)
	} else {
		list, err = d.services(ctx)
	}
	if names.Missing(err) && ctx.Err() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("discovery: %w", err), ctx.Err())
	}
	return Normalize(list)
}

func (d *dns) addresses(ctx context.Context) ([]Target, error) {
	return d.resolve(ctx, d.Name, d.Port)
}

// secondFamily is how long the other family may take, once one has answered.
const secondFamily = time.Second

// resolve looks up what a name leads to, in both families apart: one that does not answer holds up nobody.
func (d *dns) resolve(ctx context.Context, host string, port uint16) ([]Target, error) {
	found, err := names.Addresses(ctx, d.resolver, host, secondFamily)
	if err != nil {
		return nil, err
	}
	list := make([]Target, 0, len(found))
	for _, a := range found {
		list = append(list, Target{Host: a.String(), Port: port})
	}
	return list, nil
}

func (d *dns) services(ctx context.Context) ([]Target, error) {
	_, found, err := d.resolver.LookupSRV(ctx, d.Service, d.Proto, d.Name)
	if err != nil {
		return nil, err
	}
	list := make([]Target, 0, len(found))
	for _, s := range found {
		if s.Target == "." || s.Port == 0 { // the service is said not to be there
			continue
		}
		if len(list) > MaxTargets {
			return nil, tooMany(len(list))
		}
		if d.Server == "" {
			list = append(list, Target{Host: s.Target, Port: s.Port})
			continue
		}
		found, err := d.resolve(ctx, s.Target, s.Port) // the machine's own servers may not know it
		switch {
		case names.Missing(err): // it is to be there, and does not answer yet
			found = []Target{{Host: s.Target, Port: s.Port}}
		case err != nil:
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}
