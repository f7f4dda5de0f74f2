// The child of kith dev: one node process that answers its parent's calls.

package command

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
	"github.com/kith-io/kith/latency"
)

// childCmd has no flags: everything comes by calls.
type childCmd struct{}

// Run answers calls until the parent is gone; then the process ends, however its node stands.
func (*childCmd) Run(e *env.Env) error {
	c := &childNode{e: e, ledger: newLedger()}
	return c.node.Serve(e.Stdin, e.Stdout, cli.Ops{
		"start": cli.Op(c.start), "ready": cli.Op(c.ready), "status": cli.Op(c.status), "send": cli.Op(c.send),
		"stop": cli.Op(c.stop), "report": cli.Op(c.report), "leave": cli.Op(c.leave), "moves": cli.Op(c.moves),
	})
}

// childNode is the state of the process. start comes before every other call.
type childNode struct {
	e       *env.Env
	ledger  *ledger.Ledger
	node    fleet.Node
	region  *kith.Region
	leaves  atomic.Bool // it has the order to leave
	left    atomic.Bool
	refused atomic.Uint64 // messages that were accepted and came back as undelivered

	mu      sync.Mutex
	senders []*senders // each group was started by a call
}

// startArgs says how the node is started; startReply under which address. What other builds may not know is left out
// when it is zero.
type (
	startArgs struct {
		Name, Listen string
		Seeds        []string
		Shards       uint32
		LeaveTimeout time.Duration
		TLS          fleet.Files `json:",omitzero"`

		Admin bool `json:",omitzero"` // serve an admin interface on a free port
	}
	startReply struct {
		Addr  string
		Admin string `json:",omitzero"` // where that is
	}
)

func (c *childNode) start(ctx context.Context, a startArgs) (startReply, error) {
	log := slog.New(slog.NewTextHandler(c.e.Stderr, nil))
	times := latency.New()
	node, err := kith.Start(ctx, kith.Config{Latency: times.Record,
		TLS:  a.TLS.TLS(),
		Name: a.Name, Listen: a.Listen, Seeds: a.Seeds, Logger: log,
		LeaveTimeout: a.LeaveTimeout,
		Undelivered:  func(u kith.Undelivered) { c.refused.Add(u.Count) }})
	if err != nil {
		return startReply{}, err
	}
	region, err := node.Register(demo(c.ledger, a.Shards))
	if err != nil {
		return startReply{}, errors.Join(err, node.Close())
	}
	c.node.Node, c.region = node, region
	r := startReply{Addr: node.Addr().String()}
	if a.Admin { // it ends with the process, so that the page can say how the node ended
		s, err := admin.Start(node, admin.Config{Listen: "127.0.0.1:0", Times: times, Logger: log})
		if err != nil {
			return startReply{}, errors.Join(err, node.Close())
		}
		r.Admin = s.Addr().String()
	}
	return r, nil
}

func (c *childNode) ready(ctx context.Context, _ cli.None) (cli.None, error) {
	return cli.None{}, c.node.Ready(ctx)
}

// status is what the parent shows each second.
type status struct {
	Members, Up     int
	Shards          int
	Sent, Delivered uint64
	Asks            uint64
	Refused         uint64
	Left            bool // gracefully: of the rest only messages count
}

func (c *childNode) status(context.Context, cli.None) (status, error) {
	err := c.node.Err()
	if err != nil && !c.leaves.Load() {
		return status{}, err
	}
	v := c.node.View()
	s := status{Members: len(v.Members), Up: v.CountUp(), Shards: c.hosted(), Delivered: c.ledger.Total(),
		Refused: c.refused.Load(), Left: c.left.Load() || err != nil}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.senders {
		s.Sent, s.Asks = s.Sent+g.sent(), s.Asks+g.asks.Load()
	}
	return s, nil
}

// movesReply is what became of the moves that this node led.
type movesReply struct{ Done, Aborted uint64 }

func (c *childNode) moves(context.Context, cli.None) (movesReply, error) {
	m := c.node.Stats().Sharding.Moves
	if c.left.Load() { // it has not seen the end of the last ones: their shards live elsewhere
		m.Done = m.Begun - m.Aborted - m.Returned
	}
	return movesReply{m.Done, m.Aborted}, nil
}

// hosted returns how many demo shards live on this node.
func (c *childNode) hosted() int {
	n := 0
	for _, t := range c.node.Stats().Types {
		n += t.Hosted
	}
	return n
}

func (c *childNode) leave(ctx context.Context, none cli.None) (cli.None, error) {
	c.leaves.Store(true) // the node ends a moment before Depart returns
	_, err := c.node.Depart(ctx, none)
	c.left.Store(err == nil)
	return none, err
}

func (c *childNode) report(context.Context, cli.None) (ledger.Report, error) {
	return c.ledger.Report(), nil
}

// sendArgs says which senders this process runs from now on, beside those that it runs already. Rate is messages per
// second of each; zero is as fast as accepted.
type sendArgs struct {
	Senders  []uint32
	Entities int
	Rate     float64
}

func (c *childNode) send(_ context.Context, a sendArgs) (cli.None, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &senders{region: c.region, cancel: cancel, latency: fleet.NewTimes()}
	for i := range a.Entities {
		s.ids = append(s.ids, entityID(i))
	}
	for _, id := range a.Senders {
		s.streams = append(s.streams, &fleet.Stream{ID: id, Region: c.region, IDs: s.ids})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.senders = append(c.senders, s)
	s.start(ctx, a.Rate)
	return cli.None{}, nil
}

// stopReply is what the senders did, all that ran here: messages accepted, asks answered and failed, and their
// latencies as an encoded histogram in nanoseconds.
type stopReply struct {
	Sent      ledger.SentCounts
	Asks      uint64
	AskErrors uint64
	FirstErr  string
	Latency   []byte
}

func (c *childNode) stop(context.Context, cli.None) (stopReply, error) {
	c.mu.Lock()
	groups := slices.Clone(c.senders)
	c.mu.Unlock()
	r, latency := stopReply{Sent: ledger.SentCounts{}}, fleet.NewTimes()
	for _, s := range groups {
		s.cancel()
	}
	for _, s := range groups {
		s.wg.Wait()
		for _, x := range s.streams {
			r.Sent[x.ID] = x.Counts()
		}
		latency.Merge(s.latency)
		r.Asks, r.AskErrors, r.FirstErr = r.Asks+s.asks.Load(), r.AskErrors+s.askErrors, cmp.Or(r.FirstErr, s.firstErr)
	}
	var err error
	if latency.TotalCount() > 0 {
		r.Latency, err = fleet.EncodeTimes(latency)
	}
	return r, err
}

// senders is the goroutines that send numbered messages, and one that asks.
type senders struct {
	region  *kith.Region
	ids     []string // of the entities
	streams []*fleet.Stream
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	asks    atomic.Uint64

	askErrors uint64 // these three are the asker's until wg is through
	firstErr  string
	latency   *hdrhistogram.Histogram
}

// askEvery is the pause between two asks of a process: they time the way, not their own queue.
const askEvery = time.Millisecond

func (s *senders) start(ctx context.Context, rate float64) {
	for _, x := range s.streams {
		s.wg.Go(func() { x.Tell(ctx, rate) })
	}
	if len(s.streams) > 0 {
		s.wg.Go(func() { s.ask(ctx) })
	}
}

// sent returns how many messages were accepted so far.
func (s *senders) sent() (n uint64) {
	for _, x := range s.streams {
		n += x.Sent.Load()
	}
	return n
}

func (s *senders) ask(ctx context.Context) {
	r := rand.New(rand.NewPCG(uint64(s.streams[0].ID), 1))
	var into [8]byte
	for cli.Pause(ctx, askEvery) {
		begin := time.Now()
		_, err := s.region.AskWithin(5*time.Second, s.ids[r.IntN(len(s.ids))], nil, into[:0])
		took := time.Since(begin)
		switch {
		case err == nil:
			s.asks.Add(1)
			_ = s.latency.RecordValue(int64(took)) // five seconds are within its range
		case ctx.Err() == nil:
			if s.askErrors++; s.firstErr == "" {
				s.firstErr = err.Error()
			}
		}
	}
}
