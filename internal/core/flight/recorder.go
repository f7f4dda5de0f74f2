// Recorder: a node with its inputs kept in a bounded ring: two stretches, each of which begins with the state of the
// node, of which the older one goes when the newer one is full.

// Package flight keeps the inputs of a node in a bounded ring, writes them as a file, and replays them; the state of a
// node is written as bytes beside them.
package flight

import (
	"fmt"
	"reflect"
	"time"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Bounds of the ring.
const (
	DefaultBytes = 4 << 20
	MinBytes     = 64 << 10
	MaxBytes     = 1 << 30
)

// Node is a node that is stepped, and the record of how: everything that it is given, and a digest of what it answers.
// Its verbs are those of a node; whatever else is asked of it changes nothing. It is not safe for concurrent use.
type Node struct {
	*node.Node
	rec *recorder // nil: nothing is recorded
}

// recorder is the ring.
type recorder struct {
	node  *node.Node
	cfg   node.Config
	limit int // of one stretch, with its state
	over  error
	lost  func(error)

	old, cur stretch
	now      time.Duration      // of the last entry
	ids      map[peer.ID]uint64 // that were named in this stretch
	asks     [3]question        // about peers
	verbs    uint64             // since the start
	gap      bool               // an input is not in the record: what follows needs a state
	digest   digest
}

// question is something that a node asks about peers.
type question struct {
	entry byte
	real  func(peer.ID) bool   // the nodes that answer
	said  map[peer.ID]speaking // in this stretch
}

// speaking is whether a peer understood moves when it was last asked, and in which verb that was.
type speaking struct {
	ok   bool
	verb uint64
}

// stretch is inputs in their order, and the state in front of them.
type stretch struct {
	state   []byte        // empty: of a node that is new
	first   uint64        // verbs before it
	now     time.Duration // of the last entry before it
	entries []byte        // only appended to
	left    uint64        // bytes of contents that were left out
}

// New returns a node made with cfg, with its inputs kept in at most that many bytes; zero: none are. lost is called
// once if the record has to end before the node does.
func New(cfg node.Config, bytes int, lost func(error)) *Node {
	if bytes == 0 {
		return &Node{Node: node.New(cfg)}
	}
	r := &recorder{cfg: cfg, limit: bytes / 2, lost: lost, ids: map[peer.ID]uint64{}}
	for i, f := range questionsOf(&cfg) {
		if *f != nil {
			q := &r.asks[i]
			*q = question{questionKinds[i], *f, map[peer.ID]speaking{}}
			*f = func(id peer.ID) bool { return r.ask(q, id) }
		}
	}
	r.node = node.New(cfg)
	if detectorOf(cfg) == "" {
		r.end(fmt.Errorf("%w: a failure detector of its own cannot be replayed", errUnfit))
	}
	return &Node{r.node, r}
}

// questionKinds are the entries of the questions, in their order.
var questionKinds = [3]byte{entryMoves, entryCosts, entryNoState}

// questionsOf returns where a configuration says which nodes answer them.
func questionsOf(cfg *node.Config) [3]*func(peer.ID) bool {
	return [3]*func(peer.ID) bool{&cfg.Shard.Moves, &cfg.Shard.Costs, &cfg.Shard.NoStates}
}

// detectorOf names the failure detector of a configuration; empty when it is not one of ours.
func detectorOf(cfg node.Config) string {
	f := cfg.Membership.Detector
	if f == nil {
		return "phi"
	}
	switch reflect.ValueOf(f).Pointer() {
	case reflect.ValueOf(fd.PhiAccrual).Pointer():
		return "phi"
	case reflect.ValueOf(fd.Deadline).Pointer():
		return "deadline"
	}
	return ""
}

// Tick is node.Node's.
func (n *Node) Tick(now time.Duration) {
	if r := n.rec; r.on() {
		r.verb(entryTick, now)
	}
	n.Node.Tick(now)
}

// Handle is node.Node's.
func (n *Node) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	r := n.rec
	if r.on() {
		r.frame(now, arrived, from, kind, body)
	}
	err := n.Node.Handle(now, arrived, from, kind, body)
	if r.on() {
		r.digest.failed(err)
	}
	return err
}

// Do is node.Node's.
func (n *Node) Do(now time.Duration, cmd any) error {
	r := n.rec
	if r.on() {
		cmd = r.command(now, cmd)
	}
	err := n.Node.Do(now, cmd)
	if r.on() {
		r.digest.failed(err)
	}
	return err
}

// Drain is node.Node's. What it hands over goes into the record as a digest.
func (n *Node) Drain(out *node.Effects) {
	n.Node.Drain(out)
	if r := n.rec; r.on() {
		r.drained(out)
	}
}

func (r *recorder) on() bool { return r != nil && r.over == nil }

// end stops recording. What there is stays, unless an input is missing in it.
func (r *recorder) end(why error) {
	if r.gap {
		r.old, r.cur = stretch{}, stretch{}
	}
	if r.over = why; r.lost != nil {
		r.lost(why)
	}
}

// verb begins an entry.
func (r *recorder) verb(kind byte, now time.Duration) {
	r.verbs++
	c := &r.cur
	c.entries = append(c.entries, kind)
	c.entries = appendVarint(c.entries, int64(now-r.now))
	r.now = now
}

// frame takes a control frame. One that is larger than the ring bears is left out, and what came before with it.
func (r *recorder) frame(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) {
	left := contentOf(kind, body)
	if len(body)-left > r.limit/4 {
		r.verbs++
		r.gap = true
		return
	}
	entry := entryFrame
	if left > 0 {
		entry = entryBare
	}
	r.verb(entry, now)
	c := &r.cur
	c.entries = appendVarint(c.entries, int64(now-arrived))
	r.id(from)
	c.entries = appendUvarint(c.entries, uint64(kind))
	c.entries = appendBytes(c.entries, body[:len(body)-left])
	if left > 0 {
		c.entries = appendUvarint(c.entries, uint64(left))
		c.left += uint64(left)
	}
}

// id names a peer: by its number in this stretch, or zero and its identity.
func (r *recorder) id(id peer.ID) {
	c := &r.cur
	if n, ok := r.ids[id]; ok {
		c.entries = appendUvarint(c.entries, n)
		return
	}
	c.entries = peer.AppendID(append(c.entries, 0), id)
	if len(r.ids) < maxIDs {
		r.ids[id] = uint64(len(r.ids)) + 1
	}
}

// command takes a local wish and returns what is to be carried out: a strategy that cannot be kept is listened to.
func (r *recorder) command(now time.Duration, cmd any) any {
	if c, ok := cmd.(shard.RegisterCommand); ok && !ours(c.Strategy) {
		c.Strategy = listen(c.Strategy, r.answered)
		cmd = c
	}
	text, err := appendBare(nil, &cmd, r.limit/4)
	if err != nil {
		r.verbs++
		r.gap = true
		return cmd
	}
	r.verb(entryCommand, now)
	if c, ok := cmd.(shard.HandOverCommand); ok {
		r.cur.left += uint64(len(c.Left))
	}
	r.cur.entries = appendBytes(r.cur.entries, text)
	return cmd
}

// answered notes what a strategy said within this verb.
func (r *recorder) answered(a answer) {
	if !r.on() {
		return
	}
	text, err := appendValue(nil, &a, r.limit/4)
	if r.gap = r.gap || err != nil; err == nil {
		r.cur.entries = appendBytes(append(r.cur.entries, entryAnswer), text)
	}
}

// ask answers a question about a peer, the same throughout a verb.
func (r *recorder) ask(q *question, id peer.ID) bool {
	if !r.on() {
		return q.real(id)
	}
	s := q.said[id]
	if s.verb == r.verbs {
		return s.ok
	}
	ok := q.real(id)
	if ok != s.ok {
		r.cur.entries = append(r.cur.entries, q.entry)
		r.id(id)
		r.cur.entries = append(r.cur.entries, truth(ok))
	}
	if len(q.said) < maxIDs || s.verb != 0 {
		q.said[id] = speaking{ok, r.verbs}
	}
	return ok
}

// drained ends an entry, and the stretch if it is full.
func (r *recorder) drained(out *node.Effects) {
	c := &r.cur
	sum := r.digest.sum(out)
	c.entries = append(c.entries, entryDrain, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	if !r.gap && len(c.state)+len(c.entries) < r.limit {
		return
	}
	state, err := freezeBare(r.node, r.limit/2)
	if err != nil {
		r.end(fmt.Errorf("the record ends after %v: %w", r.now.Round(time.Second), err))
		return
	}
	if r.old = r.cur; r.gap {
		r.old, r.gap = stretch{}, false
	}
	r.cur = stretch{state: state, first: r.verbs, now: r.now}
	clear(r.ids)
	for i := range r.asks {
		clear(r.asks[i].said)
	}
}
