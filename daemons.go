// Daemons: numbered workers that the cluster keeps alive, each in one place.

package kith

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/shard/strategy"
)

// Daemons declares N workers of one function, numbered from 0, that the cluster keeps alive, each in one place, spread
// over the members of a role and moved as shards are: docs/singletons.md. Name, N and Role must agree on all nodes. It
// needs Name, N and Run. Workers take no messages: a tell or ask to one is refused with ErrBadID where it lives.
type Daemons struct {
	// Name names them in the whole cluster, among types and singletons: 1 to 255 bytes.
	Name string
	// N is how many there are: 1 to MaxDaemons.
	N int
	// Role limits them to members with this role; empty means all.
	Role string
	// Run is the life of worker index. It is to return soon when ctx ends: the worker moves, the node leaves, ends, is
	// suspended or has lost it; context.Cause(ctx) says which, as for Context.Context. Until it has returned the worker
	// begins nowhere else, but where its node was lost, after the takeover time: so every store that it writes to is to be
	// given fence, which grows from place to place. When Run returns, for whatever reason, it is called again after a
	// rest, as long as the worker lives here. An error is a failure and goes to Config.Incident, unless ctx has ended; a
	// panic always is one.
	Run func(ctx context.Context, index int, fence Fence) error
	// MinBackoff is the rest after Run has returned; it doubles with each failure that follows within MaxBackoff, up to
	// MaxBackoff. Zero means 1 s and 1 min; at most a day.
	MinBackoff, MaxBackoff time.Duration
}

// DaemonsRef shows the workers of one Daemons as this node sees them. Its methods are safe for concurrent use.
type DaemonsRef struct {
	region *driver.Region
	run    func(ctx context.Context, index int, fence Fence) error

	mu   sync.Mutex
	here []DaemonStatus // of each index, what happened on this node
}

// DaemonStatus is one worker of a Daemons. But for Index and Home it is about this node alone.
type DaemonStatus struct {
	Index    int
	Home     ID        // where it lives; zero: nowhere, it moves, or this node does not know
	Running  bool      // Run is being called here
	Since    time.Time // since when, or when Run returned last; zero: it was never called here
	Fence    Fence     // of the last call
	Runs     uint64    // calls of Run
	Failures uint64    // of them, those that ended with an error before ctx, or with a panic
	Err      string    // of the last failure; "panic" for one
}

// Daemons makes workers known on this node: members with the role run them, every node that declared them sees where
// they live. Errors: ErrBadConfig with all faults of d; those of Register.
func (n *Node) Daemons(d Daemons) (*DaemonsRef, error) {
	t, err := d.entityType()
	if err != nil {
		return nil, err
	}
	ref := &DaemonsRef{run: d.Run, here: make([]DaemonStatus, d.N)}
	ref.region, err = driver.RegisterKept(n.d, t, &driver.Keep{Keep: entity.Keep{Run: ref.live,
		ID: func(s ShardID) string { return strconv.Itoa(int(s)) }}})
	if err != nil {
		return nil, differs(err)
	}
	return ref, nil
}

// errNoMessages is what is left for a message that came before the worker began: its shard refuses all others, at once,
// with ErrBadID.
var errNoMessages = errors.New("kith: a daemon takes no messages")

// noMessages is the handler of these.
type noMessages struct{}

// Receive refuses.
func (noMessages) Receive(*Context, []byte) error { return errNoMessages }

// Stop has nothing to do.
func (noMessages) Stop(*Context) {}

// entityType is the type that daemons are: of one shard each, with one entity.
func (d Daemons) entityType() (EntityType, error) {
	t := EntityType{Name: d.Name, Role: d.Role, Shards: 1, New: func(string, Fence) Handler { return noMessages{} },
		Strategy: strategy.LeastShards{Absolute: MaxDaemons, Percent: 100}} // few: all that move do so in one round
	err := backoff(&t, d.MinBackoff, d.MaxBackoff)
	if d.N < 1 || d.N > MaxDaemons {
		err = errors.Join(err, fmt.Errorf("N is %d, must be 1 to %d", d.N, MaxDaemons))
	} else {
		t.Shards = uint32(d.N)
	}
	if d.Run == nil {
		err = errors.Join(err, errors.New("Run is nil"))
	}
	return t, faults("daemons", t, err)
}

// live is one call of Run.
func (r *DaemonsRef) live(ctx context.Context, c *entity.Context) (err error) {
	i := int(c.Shard)
	r.mu.Lock()
	s := &r.here[i]
	s.Running, s.Since, s.Fence = true, time.Now(), c.Fence
	s.Runs++
	r.mu.Unlock()
	failure := "panic"
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		s.Running, s.Since = false, time.Now()
		if failure != "" {
			s.Failures++
			s.Err = failure
		}
	}()
	err = r.run(ctx, i, c.Fence)
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error() // user code: it may panic
	}
	failure = text
	return err
}

// Status returns all workers by index, as this node sees them. The slice is the caller's.
func (r *DaemonsRef) Status() []DaemonStatus {
	r.mu.Lock()
	list := append([]DaemonStatus(nil), r.here...)
	r.mu.Unlock()
	for i := range list {
		list[i].Index = i
		list[i].Home, _ = r.region.Home(ShardID(i))
	}
	return list
}

// Err returns why the cluster does not run these workers as they are declared here (ErrSettingsDiffer), or nil.
func (r *DaemonsRef) Err() error { return differs(r.region.Refused()) }

// differs says of which field of Daemons an error speaks that names both values.
func differs(err error) error {
	if errors.Is(err, ErrSettingsDiffer) {
		return fmt.Errorf("daemons must have one N and Role on all nodes, N is the number of shards: %w", err)
	}
	return err
}
