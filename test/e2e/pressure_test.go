// Tests of TellWait: it waits for room at the entity wherever that lives, and nobody else waits with it.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// pressed is a cluster with a first node that alone hosts entities: those named slow wait until they are let go, the
// others book at once. reports are those of all senders.
type pressed struct {
	nodes     []*kith.Node
	senders   []*kith.Region // by node; that of the host is the first
	open      chan struct{}
	slow, all *ledger
	rep       *reports
}

const pressedMailbox, pressedLink = 64 << 10, 64 << 10

func newPressed(t *testing.T, nodes int, prepare func(i int, cfg *kith.Config)) *pressed {
	p := &pressed{open: make(chan struct{}), slow: newLedger(), all: newLedger(), rep: &reports{}}
	p.senders = make([]*kith.Region, nodes)
	p.nodes = cluster(t, nodes, func(i int, cfg *kith.Config) {
		cfg.Window, cfg.LinkBuffer, cfg.MaxPayload, cfg.Undelivered = pressedLink, pressedLink, 16<<10, p.rep.take
		if i == 0 {
			cfg.Roles = []string{"host"}
		}
		if prepare != nil {
			prepare(i, cfg)
		}
	}, func(i int, n *kith.Node) {
		r, err := n.Register(kith.EntityType{Name: "pressed", Role: "host", Shards: 4, MailboxBytes: pressedMailbox,
			New: func(id string, _ kith.Fence) kith.Handler {
				if strings.HasPrefix(id, "slow") {
					return &gate{p.open, p.slow}
				}
				return &actor{receive: func(c *kith.Context, payload []byte) error {
					p.all.got(c.ID, payload[:16], kith.ID{})
					return nil
				}}
			}})
		require.NoError(t, err)
		p.senders[i] = r
	})
	t.Cleanup(p.letGo)
	return p
}

// know makes every node learn where all shards live, so that nothing is parked.
func (p *pressed) know(t *testing.T) {
	n := 0
	for i, r := range p.senders {
		for e := range 32 {
			require.NoError(t, r.TellWait(within(t), fmt.Sprint("known-", e), numbered(i, 0)))
			n++
		}
	}
	p.all.await(t, n)
	p.all.forget()
}

func (p *pressed) letGo() {
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// waiting makes each of the nodes from on send so many messages to the slow entity, and returns those that are not done
// yet.
func (p *pressed) waiting(t *testing.T, ctx context.Context, from, count, size int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i, r := range p.senders[from:] {
		all.Go(func() {
			for seq := range uint64(count) {
				if err := r.TellWait(ctx, "slow", append(numbered(i+from, seq), make([]byte, size-16)...)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return &all
}

// hardBound is how much may wait for one entity at most, with so many senders: the mailbox, and for each of them what
// its window lets out, what its link gathers, and a frame over each.
func hardBound(senders, frame int) int64 {
	return int64(pressedMailbox + senders*(2*pressedLink+2*frame))
}

// One slow entity behind TellWait from four remote senders and one of its own node: nothing is refused, what waits is
// bounded, order holds, and messages of the same senders to others on the same links arrive meanwhile (SHD-4, ACC-5).
func TestTellWaitWaitsAtTheEntity(t *testing.T) {
	t.Parallel()
	const count, others, rounds = 400, 200, 5
	p := newPressed(t, 5, nil)
	p.know(t)
	ctx := within(t)
	done := p.waiting(t, ctx, 0, count, 4000)
	var all sync.WaitGroup
	for i, r := range p.senders[1:] {
		all.Go(func() {
			for seq := range uint64(rounds) {
				for id := range others {
					if err := r.TellWait(ctx, fmt.Sprint("other-", id), numbered(i+1, seq)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	p.all.await(t, 4*others*rounds)
	require.LessOrEqual(t, p.nodes[0].Stats().MailboxBytes, hardBound(5, 17<<10))
	require.GreaterOrEqual(t, p.nodes[0].Stats().MailboxBytes, int64(pressedMailbox), "senders wait because of it")
	eventually(t, func() bool {
		s := p.nodes[0].Stats().Types[0].Pressure
		return s == kith.PressureStats{Waits: s.Waits, Waiting: 1, Filled: 1, Full: 1} && s.Waits > 0
	}, "one waits here, for one full mailbox")
	p.letGo()
	p.slow.await(t, 5*count)
	done.Wait()
	for i, n := range p.nodes {
		require.Zero(t, n.Stats().Types[0].Pressure.Waiting)
		require.Positive(t, n.Stats().Types[0].Pressure.Waits)
		eventually(t, func() bool { s := n.Stats().Types[0].Pressure; return s.Full == 0 && (s.Filled > 0) == (i == 0) },
			"room, and who had none is known where it is")
	}
	require.Empty(t, p.rep.count, "nothing was reported, for whatever reason")
}

// The mailbox fills before a connection ever stood, and while the home is unknown: what was accepted then waits too.
func TestTellWaitBeforeTheFirstConnection(t *testing.T) {
	t.Parallel()
	const count = 300
	p := newPressed(t, 2, nil)
	done := p.waiting(t, within(t), 1, count, 4000)
	eventually(t, func() bool { return p.nodes[0].Stats().MailboxBytes >= pressedMailbox }, "a full mailbox")
	p.letGo()
	p.slow.await(t, count)
	done.Wait()
	require.Zero(t, p.rep.of(kith.ErrMailboxFull))
}

// A TellWait with a context that ends while the entity is full says which node and which bound; Tell is refused there
// and reported, as ever; and both go on when there is room.
func TestTellWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := newPressed(t, 2, nil)
	p.know(t)
	r, payload := p.senders[1], make([]byte, 4000)
	var err error
	for sent := uint64(0); err == nil || errors.Is(err, kith.ErrLinkFull); sent++ { // nobody may read for so long
		short, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
		err = r.TellWait(short, "slow", append(numbered(1, sent), payload...))
		cancel()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, kith.ErrMailboxFull)
	var refused *kith.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, kith.RefusedError{Peer: p.nodes[0].ID(), Type: "pressed", Reason: refused.Reason,
		Limit: pressedMailbox}, *refused)
	require.NoError(t, r.Tell("slow", append(numbered(9, 0), payload...)), "its link has room")
	eventually(t, func() bool { return p.rep.of(kith.ErrMailboxFull) == 1 }, "a tell refused and reported")
	waited := make(chan error, 1)
	ctx := within(t)
	go func() { waited <- r.TellWait(ctx, "slow", append(numbered(8, 0), payload...)) }()
	p.letGo()
	require.NoError(t, <-waited)
}

// The budget of all mailboxes is used up by entities that stand still: TellWait to any of that node waits, nothing is
// refused, and all go on when there is room (CARD-3).
func TestTellWaitWaitsForTheBudget(t *testing.T) {
	t.Parallel()
	const count, slow, budget = 40, 12, 256 << 10
	p := newPressed(t, 3, func(_ int, cfg *kith.Config) { cfg.MailboxBudget = budget })
	p.know(t)
	ctx := within(t)
	var all sync.WaitGroup
	for i, r := range p.senders[1:] {
		for e := range slow {
			all.Go(func() {
				for seq := range uint64(count) {
					payload := append(numbered(i+1, seq), make([]byte, 4000)...)
					if err := r.TellWait(ctx, fmt.Sprint("slow-", e), payload); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	eventually(t, func() bool { return p.nodes[0].Stats().MailboxBytes >= budget }, "the budget used up")
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for err := error(nil); ; {
		if err = p.senders[1].TellWait(short, "slow-none", numbered(1, 0)); err != nil {
			require.ErrorIs(t, err, kith.ErrMailboxFull)
			break
		}
	}
	p.letGo()
	all.Wait()
	require.Zero(t, p.rep.of(kith.ErrMailboxFull))
}
