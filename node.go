// Node: one member of a cluster in this process.

package kith

import (
	"context"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// Node is a running node. All methods are safe for concurrent use. One that is given a context which has ended returns
// its error and does nothing; when the context ends later, what has been begun goes on.
type Node struct {
	d    *driver.Driver
	cfg  Config
	over succession
}

// succession is how a node gives way to the next one of its process, which is at its address.
type succession struct {
	turn  chan struct{} // has room for the caller that makes the next one
	next  *Node         // nil: there is none
	began time.Time     // this node, or its last attempt to come back
	pause time.Duration // before the next attempt; zero: RejoinLeast
}

func init() { driver.Of = func(node any) *driver.Driver { return node.(*Node).d } }

// Start validates cfg, opens the listener and begins to join; it does not wait to be admitted: Ready does. ctx bounds
// starting only. Several nodes may run in one process, and a new one may start where one has ended.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	d, err := driver.Start(ctx, cfg.driver())
	if err != nil {
		return nil, err
	}
	return &Node{d, cfg, succession{turn: make(chan struct{}, 1), began: time.Now()}}, nil
}

// Ready waits until this node is Up. It returns the EndedError of a node that ended before; when ctx ends first, a
// *NotReadyError that says what the node waits for, such as seeds that do not answer or settings that differ.
func (n *Node) Ready(ctx context.Context) error { return n.d.Ready(ctx) }

// Health says where a node stands between its start and its end (Node.Health).
type Health struct {
	State   NodeState
	Since   time.Time // when it came there
	Reason  string    // in words; empty in StateReady, unless Stalled
	Waiting Waiting   // what it waits for, in StateStarting and StateWaiting

	Draining bool // Drain was called: everything moves, or has moved, away from here
	// Leases are the singletons that would live here, and wait for their lease (SingletonLease). The node is as ready as
	// it would be without them.
	Leases []LeaseWait
	// Duplicates are the other clusters of this one's name that this node met within the last ten minutes, and other sides
	// of its own cluster, which have its ClusterID: somebody has to end one of the two. The caller's.
	Duplicates []Duplicate
	// Outages are the members that do not answer, and lost ones with shards that wait, in the order of their identities:
	// when what lived there is served again (docs/failover.md). The caller's.
	Outages []Outage

	// Stalled is how long this node's control goroutine has not stepped, when that is two seconds or more: it is sent no
	// new work then. Something holds it, as a strategy of yours that does not return, or the machine gives it no time.
	Stalled time.Duration
	// Stuck: that is longer than the takeover time, so the others have given this node up.
	Stuck bool
}

// Alive reports whether waiting helps, as a liveness probe asks: the node has not ended, and is not Stuck. A suspended
// node, and one that waits for others, comes back by itself.
func (h Health) Alive() bool { return h.State != StateEnded && !h.Stuck }

// Ready reports whether the node handles messages and may be sent new work, as a readiness probe asks: it is Up, and
// the coordinators of the types registered here have acknowledged them. Types that no coordinator knows yet, since no
// member has their role, do not count. Once ready, a node does not wait for a type that is registered later, or for the
// next coordinator. While the cluster refuses a type as it is registered here, the node is not ready, also when it was:
// Waiting is WaitRefusedTypes and names the type with both settings. A node that is Stalled is not ready.
func (h Health) Ready() bool { return h.State == StateReady && h.Stalled == 0 }

// Health says where this node stands now, and why. It never waits: a node with a stuck control goroutine answers
// StateSuspended. NodeSuspended and NodeResumed are the events of it, Stats().Suspension counts.
func (n *Node) Health() Health { return Health(n.d.Health()) }

// Drain moves all shards away from this node, which stays a member: before maintenance, or to see whether the others
// can do without it. Each type's coordinator moves its shards to other members, and nothing is lost or reordered; until
// Undrain, or its next start, no coordinator gives this node others. It goes on sending, and serves what has not moved.
// Several callers may call it, more than once. Drain returns when nothing lives here any more; when ctx ends first, a
// *DrainError that says how many shards do, and the drain goes on: moves wait while a member is down, unreachable, or
// runs a version of kith without moves. ErrNobodyTakes: of a type that may live here no other member that is up has the
// role, and nothing has changed. ErrDrainCancelled: Undrain took it back meanwhile. ErrLeaving: this node leaves, also
// meanwhile. An *EndedError: it has ended, with what lived here. Disks of stores of package quorum hand on what they
// have as well: Drain waits until no other disk needs them, and returns a *NeededDisksError when ctx ends before, or
// when too few others stay for that. When all members drain, what they have stays where it is; shards without a home,
// those on their way to such a member among them, wait.
func (n *Node) Drain(ctx context.Context) error { return driver.Drain(ctx, n.d) }

// Undrain takes a drain back: this node gets its share at the next balance (Sharding.RebalanceInterval). Moves that
// have begun go on. It returns when this node knows it, and does nothing where there is no drain. ErrLeaving: this node
// leaves.
func (n *Node) Undrain(ctx context.Context) error { return driver.Undrain(ctx, n.d) }

// Leave leaves the cluster gracefully, by a coordinated shutdown for ReasonLeft: hosted shards move to other members,
// then the member leaves; it returns when it is removed, everything here is closed and the phases behind are over.
// While shards cannot move, since a member is down, unreachable or stands still, they stay and are served, and are
// tried again until Config.LeaveTimeout is nearly over. Then they are stopped: a StateLost incident names each state
// that is lost, and Leave returns a *LostStatesError that counts them. Where no member could ever take them, as for the
// last member or in a full shutdown, they are stopped at once. What waited here and was not handled within
// Config.LeaveTimeout, or never can be, is abandoned: each tell is reported to Config.Undelivered, each caller of an
// ask gets ErrAbandoned, and Leave returns an *AbandonedError that counts them; or both errors, joined. Disks that hand
// on what they have (quorum.Store.HandOn, or a drain before) are waited for, for two thirds of Config.LeaveTimeout:
// what is needed of them still, a *NeededDisksError counts. An *EndedError says that the node did not leave: it was
// marked down, or not removed in time. When ctx ends first the leave goes on and ctx's error returns. It ends, whatever
// handlers, hooks and tasks do, within the time limits of all phases together (docs/shutdown.md).
func (n *Node) Leave(ctx context.Context) error { return n.d.Leave(ctx) }

// Close stops the node at once, as a crash would look to the others, and waits until its goroutines have ended.
// Handlers that are running are waited for, five seconds at most, hooks likewise. What waited here is abandoned: each
// tell is reported to Config.Undelivered, each caller of an ask gets ErrAbandoned, senders on other nodes hear what of
// theirs was refused; an *AbandonedError counts what this node had accepted, and handlers that have not returned, a
// *LostStatesError the states that were to be handed over. Nil: there was nothing of that. Close is idempotent and safe
// after Leave.
func (n *Node) Close() error { return n.d.Close() }

// ID returns the identity of this node: advertised address and incarnation.
func (n *Node) ID() ID { return n.d.Self() }

// Addr returns the address under which others reach this node.
func (n *Node) Addr() Addr { return n.d.Self().Addr }

// View returns the current snapshot of membership: one atomic load, never nil, never to be changed.
func (n *Node) View() *View { return n.d.View() }

// Down marks the member at addr (host:port) as gone, which must be true: it is for an operator who knows that the
// process is dead. Without one the resolver (Config.Resolver) decides. Errors: ErrUnknownMember, ErrNotMember.
func (n *Node) Down(ctx context.Context, addr string) error { return n.d.Down(ctx, addr) }

// Convergence explains whether the cluster has converged as this node sees it; before that the leader lets no member in
// and removes none.
func (n *Node) Convergence(ctx context.Context) (Convergence, error) { return n.d.Convergence(ctx) }

// Versions says which version of the state each member is known to have, in address order. MembershipConfig.Overview
// makes the node remember what members say of it; without that only KnownVersion.Current says something. The slice is
// the caller's.
func (n *Node) Versions(ctx context.Context) ([]KnownVersion, error) { return n.d.Versions(ctx) }

// Suspicions says how this node judges the silence of each peer that it watches, in address order: what a dashboard
// shows of the failure detector. In a large cluster those are its neighbours on the ring, in both directions
// (MembershipConfig.MonitoredBy). The slice is the caller's. Errors: that of a node that has ended, and the context's.
func (n *Node) Suspicions(ctx context.Context) ([]Suspicion, error) {
	return driver.Suspicions(ctx, n.d)
}

// PrepareForFullShutdown tells the whole cluster that all of it will be stopped: Up members become PreparingForShutdown
// and then ReadyForShutdown, which the events and the View show; joins are refused, no member becomes Up or WeaklyUp.
// Hosted entities stay where they are; members then leave or are stopped one by one. It cannot be taken back. It
// returns when the order is given, not when all are ready. Errors: ErrNobodyUp, ErrNotMember.
func (n *Node) PrepareForFullShutdown(ctx context.Context) error {
	return n.d.PrepareForFullShutdown(ctx)
}

// Refound is a person's word that all members which are Down, or were removed, have ended, as this node knows them: an
// electorate that has lost a quorum of its seats for good (Sharding.Tenure) gets other holders, and what the lost owned
// begins elsewhere. If one of them lives, or another that this node does not list, two nodes may own an entity. It
// returns when the word is in the state of the cluster. Errors: ErrNoRefound, ErrNotMember.
func (n *Node) Refound(ctx context.Context) error {
	return n.d.Refound(ctx)
}

// SetMetadata sets one key of the small map that the cluster's state carries to every member; nil deletes it. View
// shows it; the last writer wins. Bounds: 64 keys for the life of the cluster, 64 bytes a key, 1 KiB a value. Errors:
// ErrBadMetadata, ErrMetadataFull, ErrNotMember.
func (n *Node) SetMetadata(ctx context.Context, key string, value []byte) error {
	return n.d.SetMetadata(ctx, key, value)
}

// Done is closed when the node has ended: left, downed, removed, refused, or closed. A handler or hook that never
// returns puts it off for seconds, not for ever. Close then returns what the end has abandoned.
func (n *Node) Done() <-chan struct{} { return n.d.Done() }

// Err returns why the node ended as *EndedError, nil while it runs.
func (n *Node) Err() error { return n.d.Err() }

// Register makes a type known on this node: members with the type's role host its entities, every node that registered
// it can send to them. Errors: faults of t, ErrTypeExists, ErrTooManyTypes, ErrHashCollision, ErrSettingsDiffer. When
// this node has not heard of the cluster's settings yet, that they differ is found out later: it is logged, and the
// Region then returns ErrSettingsDiffer. A type that was refused may be registered again.
func (n *Node) Register(t EntityType) (*Region, error) {
	r, err := n.d.Register(t)
	if err != nil {
		return nil, err
	}
	return &Region{r: r}, nil
}

// Stats returns the counters of this node. It is meant for people and exporters, not for a hot path.
func (n *Node) Stats() Stats { return Stats(n.d.Stats()) }
