// Node: what package partition stands on in a simulated process.

package hosting

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/internal/sim/virtual"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

const (
	followEvery  = 30 * time.Millisecond // how often a view is looked at
	leaveWithin  = 5 * time.Second       // how long what goes before a leave may take, as a phase of the shutdown
	askTimeout   = 5 * time.Second       // of asks without a time of their own
	answerTime   = 50 * time.Millisecond // how long the coordinator's answer to a move takes
	commandsRest = 20 * time.Millisecond // how often a command is tried at a control loop that is stuck
)

// errEnded is why a process has ended.
var errEnded = errors.New("hosting: the process has ended")

// host is a footing.Node.
type host struct {
	*virtual.Ground
	c     *cast
	p     *world.Process
	kept  any
	types map[string]entity.Type // that partitions have registered, by name
	leave func(ctx context.Context) error
	open  []*open // by path
	news  *stand  // nil: this storm has no topics
}

// ID implements footing.Node.
func (h *host) ID() peer.ID { return h.p.ID }

// View implements footing.Node.
func (h *host) View() *membership.View { return h.p.View }

// Err implements footing.Node.
func (h *host) Err() error {
	if !h.p.Alive {
		return errEnded
	}
	return nil
}

// Follow implements footing.Node.
func (h *host) Follow(ctx context.Context, ping func()) {
	for last := h.p.View; ctx.Err() == nil; {
		h.Wait(ctx, followEvery, nil)
		if h.p.View != last {
			last = h.p.View
			ping()
		}
	}
}

// Do implements footing.Node.
func (h *host) Do(ctx context.Context, cmd membership.Command) error { return h.command(ctx, cmd) }

// command gives the control loop a command, as soon as it takes one, and returns what it says.
func (h *host) command(ctx context.Context, cmd any) (err error) {
	for h.p.Stuck() {
		if h.Wait(ctx, commandsRest, nil); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	said, bell := false, make(chan struct{}, 1)
	h.p.Later(0, func() { // a step of its own: this one runs on a coroutine
		err, said = h.p.Command(cmd), true
		h.Ring(bell)
	})
	if h.Wait(ctx, soon, bell); !said {
		return ctx.Err()
	}
	return err
}

// soon is more than a command waits for its step: the next one of the process.
const soon = time.Minute

// Lane implements footing.Node.
func (h *host) Lane(t entity.Type) (footing.Lane, error) {
	decl := h.c.typ(t.Name)
	h.types[t.Name] = t
	world.Register(h.p, decl)
	return &lane{h, t.Name}, nil
}

// Hosts implements footing.Node.
func (h *host) Hosts() uint32 { return h.c.hosts }

// Draining implements footing.Node.
func (h *host) Draining() bool {
	on, _ := node.Draining(h.p.Node.Node)
	return on
}

// Converged implements footing.Node.
func (h *host) Converged(context.Context) (bool, error) {
	return h.p.View != nil && h.p.Node.Convergence().Converged, nil
}

// OnLeave implements footing.Node.
func (h *host) OnLeave(leave func(ctx context.Context) error) error {
	h.leave = leave
	return nil
}

// AskTimeout implements footing.Node.
func (*host) AskTimeout() time.Duration { return askTimeout }

// Log implements footing.Node.
func (*host) Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Kept implements footing.Node.
func (h *host) Kept() *any { return &h.kept }

// lane is a footing.Lane.
type lane struct {
	h    *host
	name string
}

// ears is the lane of what listens for instances.
func (h *host) ears() *lane { return &lane{h, earType} }

func (l *lane) region() (*world.Region, error) { return virtual.RegionOf(l.h.p, l.name) }

// Tell implements footing.Lane.
func (l *lane) Tell(headers []byte, id string, payload []byte) error {
	r, err := l.region()
	if err != nil {
		return err
	}
	_, err = r.SendWith(headers, id, payload, 0)
	return err
}

// Ask implements footing.Lane.
func (l *lane) Ask(ctx context.Context, headers []byte, id string, payload []byte) ([]byte, error) {
	return l.h.Ground.Ask(ctx, l.region, headers, id, payload)
}

// AskFunc implements footing.Lane.
func (l *lane) AskFunc(d time.Duration, headers []byte, id string, payload []byte, done func([]byte, error)) error {
	r, err := l.region()
	if err != nil {
		return err
	}
	_, err = r.AskWith(headers, d, id, payload, done)
	return err
}

// Home implements footing.Lane.
func (l *lane) Home(n route.ShardID) (peer.ID, bool) {
	r, err := l.region()
	if err != nil {
		return peer.ID{}, false
	}
	return world.HomeOf(r, n)
}

// ShardAt implements footing.Lane.
func (l *lane) ShardAt(to peer.ID) (route.ShardID, bool) {
	r, err := l.region()
	if err != nil || l.h.p.View == nil {
		return 0, false
	}
	m, ok := l.h.p.View.Member(to)
	if to != l.h.p.ID && (!ok || m.Status == membership.Down || !l.h.p.View.Reachable(to)) {
		return 0, false
	}
	for n := range route.ShardID(r.Type.Shards) {
		if at, ok := world.HomeOf(r, n); ok && at == to {
			return n, true
		}
	}
	return 0, false
}

// Load implements footing.Lane.
func (*lane) Load(peer.ID) int { return 0 }

// SetHomes implements footing.Lane.
func (l *lane) SetHomes(ctx context.Context, version uint64, wishes []strategy.Wish) error {
	return l.h.command(ctx, shard.WishesCommand{Type: route.TypeOf(l.name), Version: version, Wishes: wishes})
}

// Move implements footing.Lane.
func (l *lane) Move(ctx context.Context, n route.ShardID, to peer.ID) error {
	l.h.c.nonce++
	l.h.c.stage.MovedByHand(l.name, n, to)
	cmd := shard.AskMoveCommand{Type: route.TypeOf(l.name), Shard: n, To: to, Nonce: l.h.c.nonce}
	err := l.h.command(ctx, cmd)
	l.h.Wait(ctx, answerTime, nil)
	return err
}

// Linger implements footing.Lane.
func (l *lane) Linger(ctx context.Context, on bool) error {
	return l.h.command(ctx, shard.LingerCommand{Type: route.TypeOf(l.name), On: on})
}

// Refused implements footing.Lane.
func (l *lane) Refused() error {
	r, err := l.region()
	if err != nil {
		return err
	}
	return r.Refused
}
