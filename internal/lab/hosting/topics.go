// Topics in storms: package topic runs in the processes, all publish, subscribers come and go, some of them slow; what
// has to hold of each message that a subscriber gets (REP-2).

package hosting

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/replicated"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/topic"
)

const (
	newsType   = "kith.topics"          // what package topic registers
	newsLook   = 100 * time.Millisecond // how often a replicated value is looked at
	newsPublic = 20                     // messages of each node when all is well
	newsSlow   = 150 * time.Millisecond // for which a slow subscriber looks at a message
)

var newsNames = []string{"alarms", "prices"}

// issue is a message that was published.
type issue struct {
	by    *host
	topic string
	to    map[peer.ID]bool // other nodes to which it was sent
}

// way is what goes from a node to the subscribers of one, its own included.
type way struct {
	by    *host
	to    peer.ID
	topic string
}

// press is the topics of a storm.
type press struct {
	c      *cast
	rng    *rand.Rand
	issues []issue
	tried  map[way]map[int]int // messages that were sent or had no room, numbered in that order
	nonce  uint64
	spoil  func(frame []byte) [][]byte // of tests: what a link makes of a frame; nil: nothing
	read   int                         // messages that subscribers got
	missed uint64                      // and missed
}

// stand is the topics of a process.
type stand struct {
	topics  *topic.Topics
	open    map[string]*topic.Topic
	readers []*reader
}

func newPress(c *cast, rng *rand.Rand) *press {
	x := &press{c: c, rng: rng, tried: map[way]map[int]int{}}
	if spoils != nil {
		x.spoil = spoils()
	}
	c.declares(newsType)
	for i := range c.w.Hosts {
		c.w.After(x.between(0, 2*time.Second), func() { x.tick(i) })
	}
	return x
}

// spoils makes links that spoil frames, of tests; nil: none.
var spoils func() func(frame []byte) [][]byte

func (x *press) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(x.rng.Int64N(int64(hi-lo)+1))
}

func (x *press) violate(h *host, rule, format string, args ...any) {
	var p *world.Process
	if h != nil {
		p = h.p
	}
	x.c.stage.Violate(p, rule, format, args...)
}

// starts has a process open all topics.
func (x *press) starts(h *host) {
	if x == nil {
		return
	}
	ts, err := topic.On(h)
	if err != nil {
		x.violate(h, "topics", "they do not start: %v", err)
		return
	}
	h.news = &stand{topics: ts, open: map[string]*topic.Topic{}}
	for _, name := range newsNames {
		if h.news.open[name], err = ts.Open(name); err != nil {
			x.violate(h, "topics", "%q is not opened: %v", name, err)
		}
	}
}

// tick makes a host publish, or subscribe, and comes back.
func (x *press) tick(i int) {
	if x.c.stage.Quiet() {
		return
	}
	if p := x.c.w.Hosts[i].Process; p != nil && p.Alive && !p.Paused() {
		h := x.c.of[p]
		name := newsNames[x.rng.IntN(len(newsNames))]
		if x.rng.IntN(6) == 0 {
			x.subscribe(h, name, x.between(time.Second, 40*time.Second), x.rng.IntN(3) == 0)
		} else {
			for range 1 + x.rng.IntN(5) {
				x.publish(h, name)
			}
		}
	}
	x.c.w.After(x.between(20*time.Millisecond, 800*time.Millisecond), func() { x.tick(i) })
}

// publish publishes the next message.
func (x *press) publish(h *host, name string) {
	nth := len(x.issues)
	x.issues = append(x.issues, issue{by: h, topic: name, to: map[peer.ID]bool{}})
	x.tries(way{h, h.p.ID, name}, nth)
	_ = h.news.open[name].Publish(textOf(nth)) // an error names nodes that miss it
}

// tries notes that a message takes a way.
func (x *press) tries(w way, nth int) {
	if x.tried[w] == nil {
		x.tried[w] = map[int]int{}
	}
	x.tried[w][nth] = len(x.tried[w])
}

// issueOf returns the message of a payload, or of a frame that ends with one; -1: of none.
func (x *press) issueOf(b []byte) int {
	at := bytes.LastIndex(b, newsMark)
	if at < 0 {
		return -1
	}
	n, err := strconv.Atoi(string(b[at+len(newsMark):]))
	if err != nil || n < 0 || n >= len(x.issues) {
		return -1
	}
	return n
}

// newsMark begins the payload of a message, before its number.
var newsMark = []byte("news ")

func textOf(nth int) []byte { return strconv.AppendInt(bytes.Clone(newsMark), int64(nth), 10) }

// crosses judges a frame that is about to be sent to a node: it is the first of its message.
func (x *press) crosses(h *host, to peer.ID, frame []byte) {
	nth := x.issueOf(frame)
	if nth < 0 || x.issues[nth].by != h {
		x.violate(h, "topic-link", "sends %x, which it has not published", frame)
		return
	}
	m := &x.issues[nth]
	if m.to[to] || to == h.p.ID {
		x.violate(h, "topic-link", "message %d is sent to %s again", nth, x.c.w.Name(to))
	}
	m.to[to] = true
	x.tries(way{h, to, m.topic}, nth)
}

// reader is a subscriber.
type reader struct {
	x      *press
	h      *host
	topic  string
	slow   bool
	over   bool
	last   map[*host]int // the place on its way of the latest message of a publisher
	got    int
	gaps   int // messages that were sent to its node between two of one publisher that it got
	missed uint64
}

func (x *press) newReader(h *host, name string, slow bool) *reader {
	return &reader{x: x, h: h, topic: name, slow: slow, last: map[*host]int{}}
}

// subscribe begins a subscriber, for some time.
func (x *press) subscribe(h *host, name string, d time.Duration, slow bool) *reader {
	r := x.newReader(h, name, slow)
	h.news.readers = append(h.news.readers, r)
	h.Begin(func() {
		ctx, end := h.Within(context.Background(), d)
		defer end()
		bounds := topic.Bounds{}
		if slow {
			bounds.Messages = 3
		}
		seq, err := h.news.open[name].SubscribeWithin(ctx, bounds)
		if err != nil {
			x.violate(h, "topics", "no subscription: %v", err)
			return
		}
		for m := range seq {
			r.gets(&m)
			if slow {
				h.Wait(context.Background(), newsSlow, nil)
			}
		}
		r.over = true
	})
	return r
}

// gets judges a message: it was sent here, comes once and in its publisher's order, and what was sent between it and
// the one before is counted as missed.
func (r *reader) gets(m *topic.Message) {
	x := r.x
	nth := x.issueOf(m.Payload)
	if nth < 0 || !bytes.Equal(m.Payload, textOf(nth)) || x.issues[nth].topic != r.topic ||
		x.issues[nth].by.p.ID != m.From {
		x.violate(r.h, "topic-message", "a subscriber of %q gets %x of %s", r.topic, m.Payload, x.c.w.Name(m.From))
		return
	}
	by := x.issues[nth].by
	at, sent := x.tried[way{by, r.h.p.ID, r.topic}][nth]
	last, before := r.last[by]
	switch {
	case !sent:
		x.violate(r.h, "topic-message", "a subscriber gets message %d, which was not sent to its node", nth)
	case before && at == last:
		x.violate(r.h, "topic-once", "a subscriber of %q gets message %d of %s twice", r.topic, nth, x.c.w.Name(m.From))
	case before && at < last:
		x.violate(r.h, "topic-order", "a subscriber of %q gets message %d of %s behind later ones", r.topic, nth,
			x.c.w.Name(m.From))
	case before:
		r.gaps += at - last - 1
	}
	r.last[by] = max(at, last)
	r.got++
	r.missed += m.Missed
	x.read, x.missed = x.read+1, x.missed+m.Missed
	if uint64(r.gaps) > r.missed {
		x.violate(r.h, "topic-count", "a subscriber of %q lacks %d messages, and was told of %d", r.topic, r.gaps, r.missed)
	}
	if all := x.sentTo(r.h.p.ID, r.topic); r.missed+uint64(r.got) > uint64(all) {
		x.violate(r.h, "topic-count", "a subscriber of %q got %d messages and was told of %d more, and only %d were sent",
			r.topic, r.got, r.missed, all)
	}
}

// sentTo returns how many messages were sent to the subscribers of a node.
func (x *press) sentTo(id peer.ID, name string) (n int) {
	for w, list := range x.tried { // a sum
		if w.to == id && w.topic == name {
			n += len(list)
		}
	}
	return n
}

// unheard returns how many messages of those processes were sent to the reader's node that it has not heard of: those
// behind the last one that it got. Where they were lost, only the next message of that process can say so.
func (r *reader) unheard(hosts []*world.Process) (n int) {
	for _, p := range hosts {
		by := r.x.c.of[p]
		if last, ok := r.last[by]; ok {
			n += len(r.x.tried[way{by, r.h.p.ID, r.topic}]) - 1 - last
		}
	}
	return n
}

// demand demands, when all is well, that all nodes find each other's subscribers, and that each subscriber gets each
// message that is published then, or learns how many it did not.
func (x *press) demand() {
	if x == nil {
		return
	}
	c, name := x.c, newsNames[0]
	hosts := c.w.Running()
	var fast, slow []*reader
	for _, p := range hosts {
		fast = append(fast, x.subscribe(c.of[p], name, time.Hour, false))
		slow = append(slow, x.subscribe(c.of[p], name, time.Hour, true))
	}
	bound := c.w.Takeover() + settleBound
	for end := c.w.Now + bound; ; c.w.Advance(500 * time.Millisecond) {
		if what := x.unknown(hosts, fast, name); what == "" {
			break
		} else if c.w.Now > end {
			x.violate(nil, "topics", "%v after all is well %s", bound, what)
			return
		}
		for _, p := range hosts { // until all hear all
			x.publish(c.of[p], name)
		}
	}
	c.w.Advance(3 * time.Second) // what is on its way, and what waits for the slow
	from, strays := len(x.issues), x.strays(hosts)
	at := map[*reader]int{}
	for _, r := range fast {
		at[r] = r.got + int(r.missed) + r.unheard(hosts)
	}
	for range newsPublic {
		for _, p := range hosts {
			x.publish(c.of[p], name)
		}
		c.w.Advance(x.between(time.Millisecond, 50*time.Millisecond))
	}
	c.w.Advance(3 * time.Second)
	for _, p := range hosts { // what was lost behind the last shows with the next
		x.publish(c.of[p], name)
	}
	c.w.Advance(3 * time.Second)
	moved := x.strays(hosts) > strays
	for _, r := range fast {
		if n := r.got + int(r.missed) - at[r]; n != len(x.issues)-from && !moved {
			x.violate(r.h, "topics", "a subscriber knows of %d messages, and %d were published", n, len(x.issues)-from)
		}
	}
	for _, r := range slow {
		if r.missed == 0 || r.got == 0 {
			x.violate(r.h, "topics", "a slow subscriber got %d messages and missed %d", r.got, r.missed)
		}
	}
	for _, m := range x.issues[from:] {
		if len(m.to) != len(hosts)-1 {
			x.violate(m.by, "topic-link", "a message went to %d nodes, and %d others have subscribers", len(m.to), len(hosts)-1)
		}
	}
	if pressed != nil {
		pressed(x)
	}
}

// pressed is called when a storm's topics were judged, of tests; nil: not.
var pressed func(x *press)

// unknown says which node does not hear of another's subscribers; empty: all do.
func (x *press) unknown(hosts []*world.Process, fast []*reader, name string) string {
	for _, p := range hosts {
		if !p.Alive {
			return fmt.Sprintf("%s is gone", x.c.w.Name(p.ID))
		}
		if n := x.c.of[p].news.open[name].Stats().Nodes; n != len(hosts) {
			return fmt.Sprintf("%s knows %d nodes with subscribers, and there are %d", x.c.w.Name(p.ID), n, len(hosts))
		}
	}
	for _, r := range fast {
		if len(r.last) < len(hosts) {
			return fmt.Sprintf("a subscriber on %s has heard %d publishers of %d", x.c.w.Name(r.h.p.ID), len(r.last), len(hosts))
		}
	}
	return ""
}

// strays returns how many messages came to nodes that they were not for: a worker has moved.
func (x *press) strays(hosts []*world.Process) (n uint64) {
	for _, p := range hosts {
		n += x.c.of[p].news.topics.Stray()
	}
	return n
}

// MaxPayload implements footing.Topics.
func (*host) MaxPayload() int { return 64 << 10 }

// Views implements footing.Topics.
func (h *host) Views(ctx context.Context) iter.Seq[*membership.View] {
	return func(yield func(*membership.View) bool) {
		for last := h.p.View; ctx.Err() == nil; {
			h.Wait(ctx, followEvery, nil)
			if v := h.p.View; v != last {
				if last = v; !yield(v) {
					return
				}
			}
		}
	}
}

// Crew implements footing.Topics.
func (h *host) Crew(t entity.Type) (footing.Crew, error) {
	l, err := h.Lane(t)
	return crew{h, l}, err
}

// crew is a footing.Crew.
type crew struct {
	h    *host
	lane footing.Lane
}

// TellAt implements footing.Crew. What finds no room on the way is lost without an error: the frame goes in a step of
// its own, for the caller holds a lock.
func (w crew) TellAt(to peer.ID, payload []byte) error {
	x := w.h.c.press
	x.crosses(w.h, to, payload)
	n, ok := w.lane.ShardAt(to)
	if !ok {
		return route.NotRun(route.ErrNoHost)
	}
	frames := [][]byte{slices.Clone(payload)}
	if x.spoil != nil {
		frames = x.spoil(frames[0])
	}
	post(w.h.p, func() {
		for _, frame := range frames {
			_ = w.lane.Tell(nil, strconv.FormatUint(uint64(n), 10), frame)
		}
	})
	return nil
}

// post has f run in the next step of a process.
func post(p *world.Process, f func()) { p.Later(0, f) }

// nodeSet is the value of a topic: the nodes that have subscribers.
type nodeSet = replicated.ORSet[string]

// nodesKind deals with it, as package replicated does.
var nodesKind = &replica.Kind{Name: nodeSet{}.Kind(), Zero: nodeSet{},
	Merge:  func(a, b any) any { return a.(nodeSet).Merge(b.(nodeSet)) },
	Since:  func(v, old any) any { return v.(nodeSet).Since(old.(nodeSet)) },
	Append: func(b []byte, v any) ([]byte, error) { return v.(nodeSet).Append(b) },
	Parse:  func(b []byte) (any, error) { return nodeSet{}.Parse(b) },
}

// Nodes implements footing.Topics.
func (h *host) Nodes(name string) (footing.Value, error) {
	err := world.Replicated(h.p).Do(replica.OpenCommand{Name: name, Kind: nodesKind})
	return nodes{h, name}, err
}

// nodes is a footing.Value.
type nodes struct {
	h    *host
	name string
}

// Load implements footing.Value.
func (v nodes) Load() any { return world.Replicated(v.h.p).Value(v.name) }

// Update implements footing.Value.
func (v nodes) Update(ctx context.Context, all bool, change func(v any) any) error {
	x, level := v.h.c.press, replica.Local
	if all {
		level = replica.All
	}
	x.nonce++
	nonce, r := x.nonce|1<<63, world.Replicated(v.h.p)
	err := r.Do(replica.UpdateCommand{Name: v.name, Level: level, Nonce: nonce, Change: change})
	for err == nil && all && r.Over(nonce) == nil {
		v.h.Wait(ctx, newsLook, nil)
		err = ctx.Err()
	}
	return err
}

// Watch implements footing.Value.
func (v nodes) Watch(ctx context.Context) iter.Seq[any] {
	return func(yield func(any) bool) {
		for ctx.Err() == nil && yield(v.Load()) {
			v.h.Wait(ctx, newsLook, nil)
		}
	}
}
