// Refusals of a hello: the reasons, by their numbers on the wire, and the typed error.

package hello

import (
	"fmt"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Refusal is why an acceptor refused a hello. Numbers stand on the wire and are never reused.
type Refusal uint8

// The reasons to refuse a hello.
const (
	RefusedNone        Refusal = 0
	RefusedMagic       Refusal = 1  // not this protocol, or a first frame that is no hello
	RefusedVersion     Refusal = 2  // no wire version in common
	RefusedName        Refusal = 3  // another cluster name
	RefusedCluster     Refusal = 4  // another cluster id, both known
	RefusedSetting     Refusal = 5  // a setting that must agree differs
	RefusedIncarnation Refusal = 6  // another incarnation was meant
	RefusedSelf        Refusal = 7  // the dialler is the acceptor itself
	RefusedGoingDown   Refusal = 8  // the acceptor is closing
	RefusedRemoved     Refusal = 9  // the acceptor has removed this incarnation
	RefusedStale       Refusal = 10 // a connection of the same or a later generation exists
	RefusedBusy        Refusal = 11 // too many peers or connections
	RefusedMalformed   Refusal = 12 // a hello that does not decode
	RefusedTLS         Refusal = 13 // one end speaks TLS and the other does not
	RefusedTaken       Refusal = 14 // another node has this name: by its certificate, or by connections that stand
	RefusedHost        Refusal = 15 // the certificate does not name the host that the dialler says it is at
	RefusalCount               = 16 // above all of them
)

var refusalNames = [RefusalCount]string{
	"none", "magic", "wire-version", "cluster-name", "cluster-id", "setting", "incarnation", "self", "going-down",
	"removed", "stale", "busy", "malformed", "tls", "taken", "host",
}

// String names the reason as logs and counters do.
func (r Refusal) String() string {
	if r < RefusalCount {
		return refusalNames[r]
	}
	return fmt.Sprintf("refusal-%d", uint8(r))
}

// spoken returns r as a dialler of those versions knows it.
func (r Refusal) spoken(v wire.Versions) Refusal {
	switch {
	case v.Newest >= TailSince:
	case r == RefusedTaken:
		return RefusedBusy
	case r == RefusedHost:
		return RefusedSetting
	}
	return r
}

// ForGood reports whether trying again cannot help until one of the two nodes is configured or started anew.
func (r Refusal) ForGood() bool {
	switch r {
	case RefusedGoingDown, RefusedStale, RefusedBusy, RefusedTaken:
		return false
	}
	return true
}

// RefusedError is a refused hello. Key names what differs (for a setting, its key), Theirs is the acceptor's value and
// Ours the dialler's, both as text.
type RefusedError struct {
	Peer   peer.ID // the node that was dialled
	Reason Refusal
	Key    string
	Ours   string // the dialler's value
	Theirs string // the acceptor's value
}

// Differs reports whether the two nodes are set up differently: Key names in what, Ours and Theirs the values.
func (e *RefusedError) Differs() bool {
	switch e.Reason {
	case RefusedVersion, RefusedName, RefusedSetting, RefusedTLS:
		return e.Key != ""
	}
	return false
}

// Unwrap returns route.ErrPeerLost: a message to a peer that refuses us does not arrive.
func (e *RefusedError) Unwrap() error { return route.ErrPeerLost }

// Error names the reason and both values.
func (e *RefusedError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("transport: %s refused the connection: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("transport: %s refused the connection: %s differs: ours %q, theirs %q",
		e.Peer, wire.Printable(e.Key), e.Ours, e.Theirs)
}
