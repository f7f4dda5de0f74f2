// Links: what the transport tells of connections that stand or broke, and of peers that are gone.

package driver

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// LinkUp notes a connection.
func (t *peerTable) LinkUp(id peer.ID, lane wire.Lane, number int) {
	t.log.Debug("connected", "peer", id, "lane", lane, "number", number)
	switch {
	case lane == wire.LaneData:
		t.inbox.post(func() { _ = t.command(shard.MarkAgainCommand{To: id}) }) // the last one may have lost markers
	case lane == wire.LaneControl:
		version := transport.VersionOf(t.wires, id)
		if before(version, exitingSince) {
			t.inbox.post(func() { _ = t.command(node.OlderCommand{ID: id}) })
		}
		if before(version, partitionsSince) {
			t.inbox.post(func() { _ = t.command(membership.OldWireCommand{ID: id}) })
		}
	}
}

// before reports whether a version is known, and earlier than another one. Zero is none: the peer is gone meanwhile,
// and nothing is to be made of it that stays.
func before(version, since uint16) bool { return version != 0 && version < since }

// exitingSince is the wire version since which a member that exits counts for the side that may hold it for leaving.
const exitingSince = 7

// partitionsSince is the wire version since which a state may hold a partition table.
const partitionsSince = 9

// moves reports whether a peer is known to understand moves of shards.
func (t *peerTable) moves(id peer.ID) bool { return transport.VersionOf(t.wires, id) >= movesSince }

// movesSince is the wire version in which moves came.
const movesSince = 5

// speaks returns what reports whether a peer is known to understand a kind.
func (t *peerTable) speaks(k wire.Kind) func(peer.ID) bool {
	return func(id peer.ID) bool { return transport.VersionOf(t.wires, id) >= k.Since() }
}

// noStates reports whether a peer speaks a version, as far as one is known, that has no states of entities.
func (t *peerTable) noStates(id peer.ID) bool {
	return before(transport.VersionOf(t.wires, id), wire.KindTransferStates.Since())
}

// LinkDown fails the asks that went over a broken connection, unless they may be answered over the other one: a node
// that goes in order closes both when it has answered.
func (t *peerTable) LinkDown(id peer.ID, lane wire.Lane, number int, lost uint64, err error) {
	t.log.Debug("disconnected", "peer", id, "lane", lane, "number", number, "lost", lost, "error", err)
	if lane != wire.LaneData {
		return
	}
	if n := t.get(id); n != nil && number < len(n.conns) {
		if !n.parting() {
			t.asks.fail(n.conns[number], route.PeerLost)
		}
		t.large.lose(n.conns[number], err)
	}
}

// LinkLost takes evidence that a peer's process is gone. An upcall of the transport, from a goroutine of its own.
func (t *peerTable) LinkLost(id peer.ID) { t.lost(membership.LinkLostCommand{ID: id}) }

// LinkSilent passes on that a path is stuck, or is no more; the transport has logged it. The ticker tells it, which is
// where hooks are called.
func (t *peerTable) LinkSilent(id peer.ID, lane wire.Lane, number int, since time.Duration) {
	t.exec.ReportAny(entity.Incident{Kind: entity.Silent, Took: since, Running: since > 0,
		Text: fmt.Sprintf("%s connection %d to %s", lane, number, id)})
}

func (t *peerTable) lost(c membership.LinkLostCommand) {
	t.log.Debug("connection lost and refused", "peer", c.ID, "replaced", c.Replaced)
	t.inbox.post(func() {
		if err := t.command(c); err != nil {
			t.log.Debug("evidence not taken", "peer", c.ID, "error", err)
		}
		if t.cfg.Sharding.ProcessDeathIsProof { // what waits for its connection would wait until it is removed
			t.wires.GiveUp(c.ID)
		}
	})
}

// PeerRefused takes a refusal for good. Being refused as removed is the end of this incarnation, if the membership
// believes the refuser.
func (t *peerTable) PeerRefused(err *hello.RefusedError) {
	if !t.own(err) {
		logRefusal(t.log, err)
	}
	if err.Reason == hello.RefusedIncarnation && err.Peer.Inc != 0 {
		t.lost(membership.LinkLostCommand{ID: err.Peer, Replaced: true})
	}
	if err.Reason == hello.RefusedCluster {
		t.otherCluster(err)
	}
	if err.Reason == hello.RefusedRemoved {
		t.inbox.post(func() { t.removed(err) })
	}
}

// own reports whether a seed has turned out to be this node itself, spelled otherwise than its address, and says so.
func (t *peerTable) own(err *hello.RefusedError) bool {
	if err.Reason != hello.RefusedSelf || err.Key != "" || err.Peer.Inc != 0 || !transport.Own(t.wires, err.Peer.Addr) {
		return false
	}
	t.log.Info("a seed is this node itself, spelled otherwise than its address", "seed", err.Peer.Addr.String(), "address",
		t.view().Self.Addr.String())
	t.inbox.post(func() {
		// A node that has ended meanwhile needs to know nothing.
		_ = t.command(membership.OwnAddressCommand{Addr: err.Peer.Addr})
	})
	return true
}

// OtherVisited tells the membership that a node of another cluster has said hello here. An upcall of the transport, at
// most one a second.
func (t *peerTable) OtherVisited(from peer.Addr, clusterID, birth uint64) {
	t.inbox.post(func() { _ = t.command(membership.AskedCommand{Addr: from, ClusterID: clusterID, Birth: birth}) })
}

// Unreached tells the membership why a contact point could not be asked for a cluster. An upcall of the transport, from
// a goroutine of its own.
func (t *peerTable) Unreached(addr peer.Addr, err error) {
	c := unreachedBy(addr, err)
	t.inbox.post(func() {
		// A node that has ended meanwhile needs to know nothing.
		_ = t.command(c)
	})
}

// unreachedBy says in the membership's terms why an attempt failed.
func unreachedBy(addr peer.Addr, err error) membership.UnreachedCommand {
	var secure *trust.TLSError
	var refused *hello.RefusedError
	var system *net.OpError
	c := membership.UnreachedCommand{Addr: addr, Kind: membership.WaitSeeds, Why: err.Error()}
	switch {
	case errors.As(err, &refused) && refused.Reason == hello.RefusedSelf:
		if c.Why = "it leads to this node itself"; refused.Key != "" {
			c.Kind, c.Setting = membership.WaitSettings, "advertised address"
			c.Ours, c.Theirs = addr.String(), "the same: each node needs one of its own"
		}
	case errors.As(err, &refused):
		if refused.Differs() {
			c.Kind, c.Setting, c.Ours, c.Theirs = membership.WaitSettings, refused.Key, refused.Ours, refused.Theirs
		} else if refused.Reason == hello.RefusedHost {
			c.Kind = membership.WaitCertificate
		}
	case errors.As(err, &secure) && secure.Reason == trust.TLSPlain:
		c.Kind, c.Setting, c.Ours, c.Theirs = membership.WaitSettings, "tls", "on", "off"
	case errors.As(err, &secure) && secure.Reason.Certificate():
		c.Kind = membership.WaitCertificate
	case transport.Unasked(err):
		c.Unasked = true
	case errors.As(err, &system):
		c.Why = system.Err.Error()
	}
	return c
}

// otherCluster hands a refusal for another cluster's sake to the membership, which knows whether it was at a seed.
func (t *peerTable) otherCluster(err *hello.RefusedError) {
	c := membership.OtherClusterCommand{Addr: err.Peer.Addr}
	var ok bool
	if c.ClusterID, c.Birth, ok = err.Cluster(); !ok {
		return
	}
	t.inbox.post(func() {
		// A node that has ended meanwhile needs to know nothing.
		_ = t.command(c)
	})
}

// share names the share of the transport's rooms that a peer uses: its own as a member, one for all others.
func (t *peerTable) share(from peer.ID) peer.ID {
	if _, known := t.view().Member(from); known {
		return from
	}
	return peer.ID{}
}
