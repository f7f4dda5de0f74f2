// Carriers: how faults get into the network between node processes.

package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/bootruns"
)

// faultDriver is a network with ways that can be made to fail.
type faultDriver interface {
	// place says where the node of a slot listens and under which address the others reach it. Called before each start.
	place(slot int) (listen, advertise string, err error)
	// wrap starts a process in the network of its slot.
	wrap(slot int, o *cli.Options)
	// apply makes every way do what l says from now on.
	apply(l links) error
	// can reports whether this carrier can carry out faults of a kind.
	can(k Kind) bool
	// about says in a line what it is.
	about() string
	close() error
}

// namer is a carrier of nodes that can be known by names in place of addresses.
type namer interface {
	// byNames has place return names from now on; after an error it goes on with addresses.
	byNames() error
	// trouble makes the DNS that all nodes ask fail from now on, or fail no more. Called if it can do DNS.
	trouble(t bootruns.Trouble)
}

// neighbour is a carrier whose nodes do not reach the loopback of this process.
type neighbour interface {
	// listenAt makes a listener that the node of a slot reaches.
	listenAt(slot int) (net.Listener, error)
}

// Nets are the values of Config.Net.
var Nets = []string{"auto", "netns", "proxy"}

var errNetns = errors.New("network namespaces need root, ip and nft on Linux")

// newCarrier makes the carrier that how names; auto takes namespaces where the machine permits them, and why says what
// kept it from doing so.
func newCarrier(how string, nodes int, seed uint64) (c faultDriver, why error, err error) {
	if how == direct {
		c, err = newLoopback(nodes)
		return c, nil, err
	}
	if how != "proxy" {
		c, err = newNamespaces(os.Getpid(), nodes)
		switch {
		case err == nil:
			return c, nil, nil
		case how == "netns":
			return nil, nil, fmt.Errorf("make network namespaces: %w", err)
		}
		why = err
	}
	c, err = newProxies(nodes, seed)
	return c, why, err
}

// kindOf returns the word by which Config.Net names a carrier.
func kindOf(c faultDriver) string {
	word, _, _ := strings.Cut(c.about(), ":")
	return word
}

// direct is the value of Config.Net for a carrier that carries nothing: for faults of processes alone.
const direct = "loopback"

// loopback has nodes meet without anything between them, as proof of death demands: where a process was killed its host
// refuses connections, and a proxy would only reset them.
type loopback struct{ addrs []string }

func newLoopback(nodes int) (faultDriver, error) {
	l := &loopback{}
	for i := range nodes {
		ln, err := net.Listen("tcp4", ownHost(128, i)+":0") // as for proxies, in another part of 127/8
		if err != nil {
			return nil, fmt.Errorf("address of n%d: %w", i+1, err)
		}
		l.addrs = append(l.addrs, ln.Addr().String())
		if err := ln.Close(); err != nil {
			return nil, fmt.Errorf("address of n%d: %w", i+1, err)
		}
	}
	return l, nil
}

// place returns an address that was free a moment ago.
func (l *loopback) place(slot int) (listen, advertise string, err error) {
	return l.addrs[slot], l.addrs[slot], nil
}
func (*loopback) wrap(int, *cli.Options) {}
func (*loopback) apply(links) error      { return nil }
func (*loopback) can(k Kind) bool        { return slices.Contains([]Kind{Kill, KillAll, Pause}, k) }
func (*loopback) about() string          { return direct + ": nothing between the nodes" }
func (*loopback) close() error           { return nil }

// Spaces holds a network namespace for each of some processes.
type Spaces struct{ net faultDriver }

// NewSpaces makes them; each link carries so many megabits a second each way. It needs root, and the tools ip, nft and
// tc, on Linux.
func NewSpaces(processes, mbit int) (*Spaces, error) {
	net, err := newNamespaces(os.Getpid(), processes)
	if err != nil {
		return nil, fmt.Errorf("make network namespaces: %w", err)
	}
	s := &Spaces{net}
	l := newLinks(processes)
	l.each(func(int, int) bool { return true }, func(k *link) { k.MBit = mbit })
	if err := net.apply(l); err != nil {
		return nil, fmt.Errorf("narrow the links: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// Addr returns the address of a process, by its number from zero on.
func (s *Spaces) Addr(slot int) (string, error) {
	listen, _, err := s.net.place(slot)
	return listen, err
}

// Wrap starts a process in its namespace.
func (s *Spaces) Wrap(slot int, o *cli.Options) { s.net.wrap(slot, o) }

// Close removes the namespaces.
func (s *Spaces) Close() error { return s.net.close() }

// Network is ways between numbered processes. Close it when they have ended.
type Network struct {
	net   faultDriver
	nodes int
}

// NewNetwork makes one for so many processes, as how of Nets says.
func NewNetwork(how string, nodes int) (*Network, error) {
	net, _, err := newCarrier(how, nodes, 1)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return &Network{net, nodes}, nil
}

// Start returns where process n listens and under which address the others reach it, and has it started there.
func (w *Network) Start(n int, o *cli.Options) (listen, advertise string, err error) {
	if listen, advertise, err = w.net.place(n); err == nil {
		w.net.wrap(n, o)
	}
	return listen, advertise, err
}

// CutOff cuts all ways from and to process n.
func (w *Network) CutOff(n int) error {
	l := newLinks(w.nodes)
	l.each(func(from, to int) bool { return from == n || to == n }, func(k *link) { k.Cut = allLanes })
	return w.net.apply(l)
}

// About says in a line what it is.
func (w *Network) About() string { return w.net.about() }

// Close takes it down.
func (w *Network) Close() error { return w.net.close() }
