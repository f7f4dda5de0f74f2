// Carriers: how faults get into the network between node processes.

package chaos

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kith-io/kith/internal/cli"
)

// carrier is a network whose ways can be made to fail.
type carrier interface {
	// place says where the node of a slot listens and under which address the others reach it. Called before each start.
	place(slot int) (listen, advertise string, err error)
	// wrap has a process started in the network of its slot.
	wrap(slot int, o *cli.Options)
	// apply has every way do what l says from now on.
	apply(l links) error
	// can reports whether this carrier can carry out faults of a kind.
	can(k Kind) bool
	// about says in a line what it is.
	about() string
	close() error
}

// Nets are the values of Config.Net.
var Nets = []string{"auto", "netns", "proxy"}

var errNetns = errors.New("network namespaces need root, ip and nft on Linux")

// newCarrier makes the carrier that net names; auto takes namespaces where the machine permits them, and why says what
// kept it from doing so.
func newCarrier(net string, nodes int, seed uint64) (c carrier, why error, err error) {
	if net != "proxy" {
		c, err = newNamespaces(os.Getpid(), nodes)
		switch {
		case err == nil:
			return c, nil, nil
		case net == "netns":
			return nil, nil, fmt.Errorf("make network namespaces: %w", err)
		}
		why = err
	}
	c, err = newProxies(nodes, seed)
	return c, why, err
}

// kindOf returns the word by which Config.Net names a carrier.
func kindOf(c carrier) string {
	word, _, _ := strings.Cut(c.about(), ":")
	return word
}
