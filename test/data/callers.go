// Callers: they read and write registers, sets and fenced records through whichever node, and note what they are
// answered.

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/cli"
)

// Sizes of what is accessed.
const (
	perStore    = 6   // callers
	keys        = 8   // of a store, at a time
	shards      = 8   // of fenced records
	generation  = 300 // accesses of a store until it goes on with other keys: histories stay short
	accessLimit = 10 * time.Second
)

// callers are those of all stores.
type callers struct {
	h     *harness
	http  http.Client
	mark  atomic.Int64 // the last value written: each is written once
	fence atomic.Uint64
	count [3]atomic.Int64 // accesses, by store
	busy  sync.WaitGroup
	stop  context.CancelFunc

	mu        sync.Mutex
	registers []step
	fenced    []step
	adds      []add
	looks     []look
	owners    [shards]owner
	writes    int
	refused   int
	times     *hdrhistogram.Histogram // of writes that were acknowledged, in microseconds
}

// owner is the node that a shard was claimed for last, and the fence.
type owner struct {
	node  int
	fence uint64
}

func newCallers(h *harness) *callers {
	return &callers{h: h, times: hdrhistogram.New(1, 60_000_000, 3),
		http: http.Client{Timeout: accessLimit, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// use claims each shard once: one that was never used moves only where a node hosts its type, and none does here.
func (c *callers) use(ctx context.Context) error {
	for n := range shards {
		o := owner{n % nodes, c.fence.Add(1)}
		for c.ask(o.node, &request{Kind: "load", Shard: uint32(n), Fence: o.fence, Claim: true}).Outcome != done {
			if !cli.Pause(ctx, 100*time.Millisecond) {
				return context.Cause(ctx)
			}
		}
		c.owners[n] = o
	}
	return nil
}

// begin has all callers begin.
func (c *callers) begin() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for i := range perStore {
		for store, access := range []func(context.Context, int, *rand.Rand){c.register, c.set, c.record} {
			c.busy.Go(func() {
				rng := rand.New(rand.NewPCG(c.h.cfg.Seed, uint64(i*3+store)+1))
				every := time.Duration(float64(perStore) / c.h.cfg.Rate * float64(time.Second))
				for cli.Pause(ctx, time.Duration(rng.Float64()*2*float64(every))) {
					access(ctx, i*3+store, rng)
				}
			})
		}
	}
}

// end waits until what is under way is over.
func (c *callers) end() {
	c.stop()
	c.busy.Wait()
	c.http.CloseIdleConnections()
}

// ask asks a node. A node that was never reached has done nothing.
func (c *callers) ask(node int, q *request) (r reply) {
	door := c.h.slots[node].door()
	if door == "" {
		return reply{Outcome: refused, Error: "no process"}
	}
	body, _ := json.Marshal(q) // of numbers and bytes: it cannot fail
	answer, err := c.http.Post("http://"+door, "application/json", bytes.NewReader(body))
	if err != nil {
		return reply{Outcome: unknown, Error: err.Error()}
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		return reply{Outcome: unknown, Error: err.Error()}
	}
	return r
}

// key draws a key of a store; each generation has its own.
func (c *callers) key(store int, rng *rand.Rand) string {
	return fmt.Sprintf("%d-%d", c.count[store].Add(1)/generation, rng.IntN(keys))
}

func number(values [][]byte) int64 {
	if len(values) == 0 || len(values[0]) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(values[0]))
}

func (c *callers) wrote(r *reply, took time.Duration) {
	switch r.Outcome {
	case done:
		c.writes++
		_ = c.times.RecordValue(max(took.Microseconds(), 1))
	case refused:
		c.refused++
	}
}

// register reads or writes one register.
func (c *callers) register(_ context.Context, me int, rng *rand.Rand) {
	s := step{Register: c.key(0, rng), Caller: me}
	node := rng.IntN(nodes)
	q := &request{Kind: "get", Key: s.Register}
	if rng.IntN(2) == 0 {
		s.Write = c.mark.Add(1)
		q.Kind, q.Data = "put", binary.BigEndian.AppendUint64(nil, uint64(s.Write))
	}
	s.From = c.h.clock.Now()
	r := c.ask(node, q)
	s.To, s.Outcome, s.Read = c.h.clock.Now(), r.Outcome, number(r.Values)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registers = append(c.registers, s)
	if s.Write != 0 {
		c.wrote(&r, s.To-s.From)
	}
}

// marksOf returns the marks of all siblings.
func marksOf(values [][]byte) map[int64]bool {
	all := map[int64]bool{}
	for _, v := range values {
		for ; len(v) >= 8; v = v[8:] {
			all[int64(binary.BigEndian.Uint64(v))] = true
		}
	}
	return all
}

// set reads a set and adds a mark, on top of what it has read. Others do so beside it: nothing may get lost.
func (c *callers) set(_ context.Context, _ int, rng *rand.Rand) {
	key := c.key(1, rng)
	from := c.h.clock.Now()
	r := c.ask(rng.IntN(nodes), &request{Kind: "read", Key: key})
	if r.Outcome != done {
		return
	}
	marks := marksOf(r.Values)
	c.mu.Lock()
	c.looks = append(c.looks, look{key, marks, from})
	c.mu.Unlock()
	if rng.IntN(2) == 0 {
		return
	}
	mark := c.mark.Add(1)
	data := binary.BigEndian.AppendUint64(nil, uint64(mark))
	for m := range marks {
		data = binary.BigEndian.AppendUint64(data, uint64(m))
	}
	from = c.h.clock.Now()
	r = c.ask(rng.IntN(nodes), &request{Kind: "add", Key: key, Data: data, Version: r.Version})
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Outcome == done {
		c.adds = append(c.adds, add{key, mark, c.h.clock.Now()})
	}
	c.wrote(&r, c.h.clock.Now()-from)
}

// record reads or writes the record of a shard, as its owner; now and then another node becomes that.
func (c *callers) record(_ context.Context, me int, rng *rand.Rand) {
	n := rng.IntN(shards)
	c.mu.Lock()
	o := c.owners[n]
	c.mu.Unlock()
	q := &request{Kind: "load", Shard: uint32(n)}
	if o.fence == 0 || rng.IntN(50) == 0 {
		o, q.Claim = owner{rng.IntN(nodes), c.fence.Add(1)}, true
	}
	q.Fence = o.fence
	s := step{Register: fmt.Sprint("shard ", n), Caller: me}
	if rng.IntN(2) == 0 {
		s.Write = c.mark.Add(1)
		q.Kind, q.Data = "commit", binary.BigEndian.AppendUint64(nil, uint64(s.Write))
	}
	s.From = c.h.clock.Now()
	r := c.ask(o.node, q)
	s.To, s.Outcome, s.Read = c.h.clock.Now(), r.Outcome, number(r.Values)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fenced = append(c.fenced, s)
	switch {
	case s.Outcome == done && q.Claim && o.fence > c.owners[n].fence:
		c.owners[n] = o
	case s.Outcome != done && c.owners[n] == o: // the next one claims it for another node
		c.owners[n] = owner{}
	}
	if s.Write != 0 {
		c.wrote(&r, s.To-s.From)
	}
}

// readAll reads all that was written once more, by nodes that are whole. It returns how much could not be read, and the
// sets.
func (c *callers) readAll(ctx context.Context) (unread int, sets map[string]map[int64]bool) {
	sets = map[string]map[int64]bool{}
	again := func(q request) (r reply, from, to time.Duration) {
		for i := 0; ctx.Err() == nil && i < 100; i++ {
			from = c.h.clock.Now()
			r = c.ask(i%nodes, &q)
			to = c.h.clock.Now()
			if r.Outcome == done {
				return r, from, to
			}
			if q.Fence = 0; q.Kind == "load" {
				q.Fence, q.Claim = c.fence.Add(1), true
			}
			cli.Pause(ctx, 100*time.Millisecond)
		}
		unread++
		return r, from, to
	}
	names := map[string]bool{}
	for _, s := range c.registers {
		names[s.Register] = true
	}
	for name := range names { // in any order
		r, from, to := again(request{Kind: "get", Key: name})
		c.registers = append(c.registers, step{Register: name, Caller: -1, From: from, To: to, Outcome: r.Outcome,
			Read: number(r.Values)})
	}
	for n := range shards {
		r, from, to := again(request{Kind: "load", Shard: uint32(n), Fence: c.fence.Add(1), Claim: true})
		c.fenced = append(c.fenced, step{Register: fmt.Sprint("shard ", n), Caller: -1, From: from, To: to,
			Outcome: r.Outcome, Read: number(r.Values)})
	}
	for _, a := range c.adds {
		if sets[a.Key] == nil {
			r, from, _ := again(request{Kind: "read", Key: a.Key})
			sets[a.Key] = marksOf(r.Values)
			c.looks = append(c.looks, look{a.Key, sets[a.Key], from})
		}
	}
	return unread, sets
}
