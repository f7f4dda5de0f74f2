// The callers: outside of the nodes, over HTTP, each transfer two changes, and the accesses of registers.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/lab/queuetest"
)

// What is called, and how often.
const (
	opening      = 1000 // what an account has first
	mostUnderWay = 4096 // transfers
	registers    = 8
	registerEach = 3 // callers of each register
	registerRest = 60 * time.Millisecond
	callTime     = askTime + 5*time.Second
	againLeast   = 20 * time.Millisecond // before a change is asked again; it doubles
	againMost    = time.Second
	lateLeast    = 3 * time.Second // one in four comes so much later, at least
)

// callers are the callers and what they know.
type callers struct {
	h    *harness
	http *http.Client
	calm atomic.Bool // no fault is near

	ctx  context.Context // of the traffic: nothing is begun when it has ended
	stop context.CancelFunc
	late context.Context // ends when nothing is asked again any more
	busy sync.WaitGroup
	room chan struct{}
	turn atomic.Uint64

	mu                         sync.Mutex
	orders                     []order
	steps                      []step
	post                       queuetest.History
	transfers                  int
	unfinished                 int
	repeated, refused, notSent int
	times, calmly              *hdrhistogram.Histogram
	values                     int64
}

func newCallers(h *harness) *callers {
	c := &callers{h: h, room: make(chan struct{}, mostUnderWay), times: fleet.NewTimes(), calmly: fleet.NewTimes(),
		http: &http.Client{Timeout: callTime, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.late = context.Background()
	return c
}

func accountName(i int) string { return fmt.Sprintf("a%d", i) }

// ask asks an entity through a node, another one each time.
func (c *callers) ask(ctx context.Context, kind, id string, q any) reply {
	return c.askBut(ctx, -1, kind, id, q)
}

// askBut is ask, and never through one node.
func (c *callers) askBut(ctx context.Context, but int, kind, id string, what any) reply {
	l := c.through(but)
	if l == nil {
		return reply{refused, 0, "no node runs"}
	}
	body, err := json.Marshal(what)
	if err != nil {
		return reply{refused, 0, err.Error()}
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Door+"/"+kind+"/"+id, bytes.NewReader(body))
	if err != nil {
		return reply{refused, 0, err.Error()}
	}
	a, err := c.http.Do(q)
	if err != nil {
		if x := (*net.OpError)(nil); errors.As(err, &x) && x.Op == "dial" {
			return reply{refused, 0, err.Error()}
		}
		return reply{unknown, 0, err.Error()}
	}
	defer a.Body.Close()
	var r reply
	b, err := io.ReadAll(io.LimitReader(a.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return reply{unknown, 0, err.Error()}
	}
	return r
}

// through returns a process to ask through, another one each time, and never that of one node; nil: none runs.
func (c *callers) through(but int) *life {
	for range c.h.slots {
		s := c.h.slots[c.turn.Add(1)%uint64(len(c.h.slots))]
		if l := s.current(); l != nil && s.number != but {
			return l
		}
	}
	return nil
}

// change asks for a change: with a key until its outcome is known, without one once.
func (c *callers) change(id string, what request[change]) outcome {
	again, rest, may := what.Key != "", againLeast, false
	if c.h.cfg.Break == breakAgain {
		what.Key = ""
	}
	for {
		r := c.ask(context.Background(), bankType, id, what)
		switch {
		case r.Outcome == unknown:
			may = true
		case r.Outcome == refused:
			c.count(&c.refused)
		case r.Outcome == rejected && may: // one that was asked before may still be on its way
			return unknown
		default:
			return r.Outcome
		}
		if !again {
			return r.Outcome
		}
		pause := rest
		if rand.IntN(4) == 0 { // a caller that comes back late: the account has been put away meanwhile
			pause += lateLeast + rand.N(lateLeast)
		}
		if !cli.Pause(c.late, pause) {
			if may {
				return unknown
			}
			return refused
		}
		c.count(&c.repeated)
		rest = min(2*rest, againMost)
	}
}

func (c *callers) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// ordered asks for a change, once or until its outcome is known, and notes what came of it.
func (c *callers) ordered(id string, e entry, to string, after time.Duration, once bool) bool {
	q := request[change]{Message: change{e, to, after}}
	if once {
		q.Key = fmt.Sprintf("k%x", e.ID)
	}
	o := c.change(id, q)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, order{e, id, to, after != 0, o})
	return o == done
}

// openingID numbers the opening of an account.
func openingID(i int) uint64 { return 1<<62 | uint64(i) }

// open opens all accounts.
func (c *callers) open(ctx context.Context) error {
	late, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	c.late = late
	defer func() { c.late = context.Background() }()
	var open sync.WaitGroup
	var missing atomic.Int64
	room := make(chan struct{}, 64)
	for i := range c.h.cfg.Accounts {
		room <- struct{}{}
		open.Go(func() {
			if !c.ordered(accountName(i), entry{openingID(i), opening}, "", 0, true) {
				missing.Add(1)
			}
			<-room
		})
	}
	open.Wait()
	if n := missing.Load(); n > 0 {
		return fmt.Errorf("%d accounts could not be opened", n)
	}
	return nil
}

// begin begins the traffic.
func (c *callers) begin() {
	late, cancel := context.WithCancel(context.Background())
	c.late = late
	context.AfterFunc(c.ctx, func() { time.AfterFunc(c.h.cfg.drain(), cancel) })
	c.busy.Go(c.send)
	for i := range letterSenders {
		c.busy.Go(func() { c.letters(i) })
	}
	for i := range registers {
		for k := range registerEach {
			c.busy.Go(func() { c.access(fmt.Sprintf("r%d", i), i*registerEach+k) })
		}
	}
}

// end ends the traffic, and waits for what is under way.
func (c *callers) end() {
	c.stop()
	c.busy.Wait()
}

// send makes transfers at a steady rate.
func (c *callers) send() {
	rng := rand.New(rand.NewPCG(c.h.cfg.Seed, 1))
	n := uint64(0)
	for due := range fleet.Due(c.ctx, c.h.cfg.Rate, time.Millisecond) {
		n++
		from, to := rng.IntN(c.h.cfg.Accounts), rng.IntN(c.h.cfg.Accounts-1)
		if to >= from {
			to++
		}
		amount, once, number := 1+rng.Int64N(20), rng.IntN(4) > 0, n
		select {
		case c.room <- struct{}{}:
		default:
			c.count(&c.notSent)
			continue
		}
		c.busy.Go(func() {
			c.transfer(accountName(from), accountName(to), number, amount, once, due)
			<-c.room
		})
	}
}

// transfer takes from one account and gives to the other: as one change with a key, which sends the other one; or as
// two, the first of which is asked once alone, without a key: that says what a plain ask promises.
func (c *callers) transfer(from, to string, n uint64, amount int64, once bool, due time.Time) {
	calm := c.calm.Load()
	e, after := entry{n << 1, -amount}, time.Duration(0)
	if n%4 == 0 {
		after = time.Duration(n%97) * 80 * time.Millisecond
	}
	if once {
		if !c.ordered(from, e, to, after, true) {
			return
		}
	} else if !c.ordered(from, e, "", after, false) {
		return
	} else if !c.ordered(to, e.next(), "", 0, true) {
		c.count(&c.unfinished)
		return
	}
	took := int64(time.Since(due))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transfers++
	_ = c.times.RecordValue(min(took, int64(time.Minute)))
	if calm && c.calm.Load() {
		_ = c.calmly.RecordValue(min(took, int64(time.Minute)))
	}
}

// access reads and writes a register until the traffic ends.
func (c *callers) access(name string, caller int) {
	rng := rand.New(rand.NewPCG(c.h.cfg.Seed, uint64(2+caller)))
	for cli.Pause(c.ctx, registerRest/2+time.Duration(rng.Int64N(int64(registerRest)))) {
		s := step{Register: name, Caller: caller}
		switch rng.IntN(5) {
		case 0, 1:
			c.mu.Lock()
			c.values++
			s.Write = c.values
			c.mu.Unlock()
		case 2:
			s.Plain = true
		}
		s.From = c.h.clock.Now()
		r := c.ask(context.Background(), registerType, name, request[access]{Message: access{s.Write, s.Plain}})
		s.To, s.Read, s.Outcome = c.h.clock.Now(), r.Value, r.Outcome
		c.mu.Lock()
		c.steps = append(c.steps, s)
		c.mu.Unlock()
	}
}

// readAll reads all accounts through the nodes, and returns how many do not answer.
func (c *callers) readAll(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, c.h.cfg.drain())
	defer cancel()
	return c.answered(ctx, -1)
}

// answered reads all accounts through all nodes but one until they answer or ctx ends, and returns how many do not.
func (c *callers) answered(ctx context.Context, but int) int {
	var missing atomic.Int64
	var busy sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range c.h.cfg.Accounts {
		room <- struct{}{}
		busy.Go(func() {
			for c.askBut(ctx, but, bankType, accountName(i), request[change]{}).Outcome != done {
				if !cli.Pause(ctx, 100*time.Millisecond) {
					missing.Add(1)
					break
				}
			}
			<-room
		})
	}
	busy.Wait()
	return int(missing.Load())
}

// tally notes in the result what the callers know, reads the accounts, and has each register read a last time, from
// what is stored.
func (c *callers) tally(r *Result, at []stored) (map[string]account, error) {
	accounts := map[string]account{}
	now := c.h.clock.Now()
	for _, s := range at {
		switch s.Type {
		case queueType:
			continue
		case registerType:
			var v register
			if err := json.Unmarshal(s.State, &v); err != nil {
				return nil, fmt.Errorf("%s: %w", s.ID, err)
			}
			c.steps = append(c.steps, step{Register: s.ID, Caller: registers * registerEach, Read: v.Value, From: now,
				To: now + 1, Outcome: done})
			continue
		}
		var a account
		if err := (accountCodec{}).ParseInto(s.State, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", s.ID, err)
		}
		accounts[s.ID] = a
	}
	r.Transfers, r.Unfinished, r.NotSent = c.transfers, c.unfinished, c.notSent
	r.Repeated, r.Refused = c.repeated, c.refused
	r.P50, r.P99 = millis(c.times, 50), millis(c.times, 99)
	r.CalmP50, r.CalmP99 = millis(c.calmly, 50), millis(c.calmly, 99)
	return accounts, nil
}

func millis(h *hdrhistogram.Histogram, q float64) float64 {
	return float64(h.ValueAtQuantile(q)/1000) / 1000
}
