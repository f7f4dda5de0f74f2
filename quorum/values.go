// Values: a store of a node, as its callers have it.

package quorum

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/gossip"
	core "github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Values are the values of a store, by key. All methods are safe for concurrent use.
type Values struct {
	loop
	resolve func(key []byte, values [][]byte) ([]byte, error)
}

// Open opens a store on a node, once; every node that reads, writes or holds values does so. It does not wait for
// others: Ready does. The node's address has to stay the same over restarts. Errors: all that Validate finds, ErrName,
// ErrDisk, ErrOld, those of the engine, and why the node has ended. After an error the engine is the caller's still.
func Open(node *kith.Node, s Store) (*Values, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	d := driver.Of(node)
	founders := s.Founders
	if founders == 0 {
		founders = s.config().WithDefaults().N
	}
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	name := d.Config().Name + "/" + s.Name
	site, err := core.OpenSite(s.config(), founders, name, node.ID(), s.Engine, time.Now().UnixMilli(), rng)
	if err != nil {
		return nil, err
	}
	v := &Values{resolve: s.Resolve}
	if err := v.init(node, &s, name, site); err != nil {
		return nil, err
	}
	if v.service, err = driver.Parcels(d).Open("quorum/"+s.Name, v.rouse); err != nil {
		if why := node.Err(); why != nil {
			return nil, why
		}
		return nil, fmt.Errorf("%w: %q", ErrName, s.Name)
	}
	v.service.Report(v.Stats)
	v.service.Show(shown{&v.loop})
	go v.watch(node)
	go v.run(driver.Parcels(d).Over())
	return v, nil
}

// Renew makes the disk of a backup, s.Engine, that of a new replica, before Open: it keeps its values, and reads what
// it lacks before it counts; it keeps no fenced records, but copies those of the others. A backup that is opened
// without Renew says that it is the disk of before, and may bring back what was replaced. It has to be renewed for the
// address that it is from. Errors: ErrDisk of a disk that has no values, ErrOld, those of the engine; the engine stays
// the caller's.
func Renew(s Store) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := records.Wipe(s.Engine); err != nil { // first: what is there is of the disk of before
		return err
	}
	return core.RenewSite(s.config(), s.Engine, time.Now().UnixMilli(), max(rand.Uint64(), 1))
}

// Get reads a key from R replicas. Errors: ErrTooLarge, ErrBusy, ErrMembers, ErrNotFounded, ErrClosed, *TooFewError,
// the context's, and what Store.Resolve returned, wrapped: the Reading has all values then.
func (v *Values) Get(ctx context.Context, key []byte) (Reading, error) {
	r, err := v.request(ctx, func(number uint64) core.Command {
		return core.GetCommand{Number: number, Key: bytes.Clone(key)}
	})
	if err != nil || len(r.Values) < 2 || v.resolve == nil {
		return r, err
	}
	one, err := v.resolved(bytes.Clone(key), r.Values)
	if err != nil {
		return r, fmt.Errorf("quorum: Store.Resolve of %d values of %q: %w", len(r.Values), key, err)
	}
	r.Values = [][]byte{one}
	return r, nil
}

// resolved calls the function of the store, which may panic.
func (v *Values) resolved(key []byte, values [][]byte) (one []byte, err error) {
	own := make([][]byte, len(values))
	for i := range values {
		own[i] = bytes.Clone(values[i])
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return v.resolve(key, own)
}

// Put writes a key on top of what on has read, and returns what it has then: other values too where others have written
// meanwhile. A Register pays no heed to on. When it returns no error, W replicas have it on disk. Errors: as those of
// Get, ErrVersion, ErrUnable, ErrSiblings; with *TooFewError, ErrSiblings, ErrClosed or the context's the write may be
// kept.
func (v *Values) Put(ctx context.Context, key, data []byte, on Version) (Reading, error) {
	return v.write(ctx, key, data, on, false)
}

// Delete is Put of no value. It is remembered for Store.Grace, as a version.
func (v *Values) Delete(ctx context.Context, key []byte, on Version) (Reading, error) {
	return v.write(ctx, key, nil, on, true)
}

func (v *Values) write(ctx context.Context, key, data []byte, on Version, del bool) (Reading, error) {
	c, err := clockOf(on)
	if err != nil {
		return Reading{}, err
	}
	return v.request(ctx, func(number uint64) core.Command {
		return core.PutCommand{Number: number, Key: bytes.Clone(key), Data: bytes.Clone(data), Context: c, Delete: del}
	})
}

// request carries out a command and makes a reading of its outcome.
func (v *Values) request(ctx context.Context, command func(number uint64) core.Command) (Reading, error) {
	o, err := v.do(ctx, command)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Version: versionOf(o.Context)}
	for i := range o.Entry {
		r.Values = append(r.Values, bytes.Clone(o.Entry[i].Data))
	}
	return r, nil
}

// Ready waits until the store has begun, and this node's disk lacks nothing of what others hold. Errors: ErrClosed, and
// the context's.
func (v *Values) Ready(ctx context.Context) error {
	for {
		if s := v.Stats(); s.Disks > 0 && s.Lacking == 0 {
			return nil
		}
		select {
		case <-v.over:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stats returns the counts of this node.
func (v *Values) Stats() Stats {
	s := *v.stats.Load()
	switch wish := v.handOn.wish.Load(); {
	case wish && !s.HandOn.Leaves: // it has not been begun
		s.HandOn = stats.HandOn{Leaves: true, Disks: 1}
	case !wish:
		s.HandOn = stats.HandOn{}
	}
	return s
}

// Close ends the store on this node and closes its engine, whose error it returns. The end of the node does so too.
func (v *Values) Close() error {
	v.close()
	<-v.over
	return v.closed
}

func versionOf(c gossip.Clock) Version {
	if len(c) == 0 {
		return nil
	}
	return gossip.AppendClock(nil, c)
}

func clockOf(v Version) (gossip.Clock, error) {
	if len(v) == 0 {
		return nil, nil
	}
	r := wire.NewReader(0, v)
	c := gossip.ReadClock(&r, core.MaxClock)
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return c, nil
}
