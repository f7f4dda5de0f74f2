// The child of node dev: one node process that answers its parent's calls.

package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/ledger"
)

// childCmd has no flags: everything comes by calls.
type childCmd struct{}

// Run answers calls until the parent is gone; then the process ends, however its node stands.
func (*childCmd) Run(e *env) error {
	c := &childNode{e: e, ledger: newLedger()}
	err := cli.Serve(e.stdin, e.stdout, cli.Ops{
		"start": cli.Op(c.start), "ready": cli.Op(c.ready), "status": cli.Op(c.status), "send": cli.Op(c.send),
		"stop": cli.Op(c.stop), "report": cli.Op(c.report), "address": cli.Op(c.address),
		"lookout": cli.Op(c.lookOut), "noticed": cli.Op(c.noticed), "leave": cli.Op(c.leave),
	})
	if c.node != nil {
		_ = c.node.Close()
	}
	return err
}

// childNode is the state of the process. start comes before every other call.
type childNode struct {
	e       *env
	ledger  *ledger.Ledger
	node    *kith.Node
	region  *kith.Region
	refused atomic.Uint64 // messages that were accepted and came back as undelivered

	lookout lookout

	mu      sync.Mutex
	senders *senders
}

// startArgs says how the node is started; startReply under which address.
type (
	startArgs struct {
		Name, Listen string
		Seeds        []string
		Shards       uint32
		LeaveTimeout time.Duration
		TLS          tlsFiles `json:",omitzero"`
	}
	startReply struct{ Addr string }
)

func (c *childNode) start(ctx context.Context, a startArgs) (startReply, error) {
	log := slog.New(slog.NewTextHandler(c.e.stderr, nil))
	node, err := kith.Start(ctx, kith.Config{TLS: kith.TLS{CertFile: a.TLS.Cert, KeyFile: a.TLS.Key, CAFile: a.TLS.CA},
		Name: a.Name, Listen: a.Listen, Seeds: a.Seeds, Logger: log,
		LeaveTimeout: a.LeaveTimeout, Undelivered: func(u kith.Undelivered) { c.refused.Add(u.Count) }})
	if err != nil {
		return startReply{}, err
	}
	region, err := node.Register(demo(c.ledger, a.Shards))
	if err != nil {
		return startReply{}, errors.Join(err, node.Close())
	}
	c.node, c.region = node, region
	return startReply{node.Addr().String()}, nil
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
}

func (c *childNode) status(context.Context, cli.None) (status, error) {
	if err := c.node.Err(); err != nil {
		return status{}, err
	}
	v := c.node.View()
	s := status{Members: len(v.Members), Up: v.CountUp(), Shards: c.hosted(), Delivered: c.ledger.Total(),
		Refused: c.refused.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.senders != nil {
		s.Sent, s.Asks = c.senders.sent.Load(), c.senders.asks.Load()
	}
	return s, nil
}

// hosted returns how many demo shards live on this node.
func (c *childNode) hosted() int {
	n := 0
	for _, t := range c.node.Stats().Types {
		n += t.Hosted
	}
	return n
}

func (c *childNode) leave(ctx context.Context, _ cli.None) (cli.None, error) {
	err := c.node.Leave(ctx)
	if errors.Is(err, kith.ErrAbandoned) { // the ledgers show it, and Undelivered has told of it
		err = nil
	}
	return cli.None{}, err
}

func (c *childNode) report(context.Context, cli.None) (ledger.Report, error) {
	return c.ledger.Report(), nil
}

// sendArgs says which senders this process runs. Rate is messages per second of each; zero is as fast as accepted.
type sendArgs struct {
	Senders  []uint32
	Entities int
	Rate     float64
}

func (c *childNode) send(_ context.Context, a sendArgs) (cli.None, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &senders{region: c.region, args: a, ids: make([]string, a.Entities), cancel: cancel, counts: ledger.SentCounts{},
		latency: newLatency()}
	for i := range s.ids {
		s.ids[i] = entityID(i)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.senders != nil {
		cancel()
		return cli.None{}, errors.New("senders are running already")
	}
	c.senders = s
	s.start(ctx)
	return cli.None{}, nil
}

// stopReply is what the senders did: messages accepted, asks answered and failed, and their latencies as an encoded
// histogram in nanoseconds.
type stopReply struct {
	Sent      ledger.SentCounts
	Asks      uint64
	AskErrors uint64
	FirstErr  string
	Latency   []byte
}

func (c *childNode) stop(context.Context, cli.None) (stopReply, error) {
	c.mu.Lock()
	s := c.senders
	c.mu.Unlock()
	if s == nil {
		return stopReply{}, nil
	}
	s.cancel()
	s.wg.Wait()
	b, err := s.latency.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return stopReply{s.counts, s.asks.Load(), s.askErrors, s.firstErr, b}, err
}

// newLatency returns a histogram from a microsecond to a minute in nanoseconds, three significant digits.
func newLatency() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

// senders is the goroutines that send numbered messages, and one that asks.
type senders struct {
	region *kith.Region
	args   sendArgs
	ids    []string
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sent   atomic.Uint64
	asks   atomic.Uint64

	mu        sync.Mutex
	counts    ledger.SentCounts // filled when a sender ends
	askErrors uint64            // these three are the asker's until wg is through
	firstErr  string
	latency   *hdrhistogram.Histogram
}

// askEvery is the pause between two asks of a process: they time the way, not their own queue.
const askEvery = time.Millisecond

func (s *senders) start(ctx context.Context) {
	for _, n := range s.args.Senders {
		s.wg.Go(func() { s.tell(ctx, n) })
	}
	if len(s.args.Senders) > 0 {
		s.wg.Go(func() { s.ask(ctx) })
	}
}

// tell sends numbered messages to entities picked at random until ctx ends. A number is used up only by a message that
// was accepted.
func (s *senders) tell(ctx context.Context, sender uint32) {
	seqs := make([]uint64, len(s.ids))
	r := rand.New(rand.NewPCG(uint64(sender), 0))
	begin, n := time.Now(), 0
	var buf [tellSize]byte
	for ctx.Err() == nil {
		if s.args.Rate > 0 {
			due := begin.Add(time.Duration(float64(n) / s.args.Rate * float64(time.Second)))
			if wait := time.Until(due); wait > time.Millisecond && !cli.Pause(ctx, wait) {
				break
			}
		}
		i := r.IntN(len(s.ids))
		putTell(&buf, sender, seqs[i]+1)
		if err := s.region.TellWait(ctx, s.ids[i], buf[:]); err != nil {
			if ctx.Err() == nil && !cli.Pause(ctx, 10*time.Millisecond) { // not accepted: the same number again
				break
			}
			continue
		}
		seqs[i]++
		n++
		s.sent.Add(1)
	}
	m := map[string]uint64{}
	for i, n := range seqs {
		if n > 0 {
			m[s.ids[i]] = n
		}
	}
	s.mu.Lock()
	s.counts[sender] = m
	s.mu.Unlock()
}

func (s *senders) ask(ctx context.Context) {
	r := rand.New(rand.NewPCG(uint64(s.args.Senders[0]), 1))
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
