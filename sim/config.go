// What a simulated cluster is made of, by the names that tests use; the types stand in package setup.

package sim

import "github.com/kith-io/kith/sim/setup"

type (
	// Config is what a simulated cluster is made of; With edits it. The zero value of a field takes its default.
	Config = setup.Config
	// Network says how good the network is.
	Network = setup.Network
	// RawNetwork is a network without TCP's repairs, for control messages.
	RawNetwork = setup.RawNetwork
	// DataConfig bounds what is between senders and entities.
	DataConfig = setup.DataConfig
)
