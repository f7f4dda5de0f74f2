// Replay: the inputs of a record go through a node of the same code again.

package flight

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// Step is one verb of a node, replayed, with what it handed over. It is valid until the call that tells of it returns.
type Step struct {
	Verb    uint64        // its number since the start of the node, from 1
	At      time.Duration // on the node's clock
	From    peer.ID       // of a frame
	Kind    wire.Kind     // likewise
	Command any           // of a command; neither: a tick
	Err     error         // what the verb returned
	Effects *node.Effects
}

// DivergedError says that a replay went another way than the node did: another build, or something that the node is not
// given as an input. Get at it with errors.As.
type DivergedError struct {
	Verb uint64        // the first verb that was answered otherwise
	At   time.Duration // on the node's clock
	What string
}

// Error names the verb.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("flight: the replay diverges at verb %d, %v after the node's start: %s", e.Verb, e.At, e.What)
}

// PanicError says that the node panicked in a verb. It is how a record of a node that panicked ends.
type PanicError struct {
	Verb uint64
	At   time.Duration
	What string
}

// Error names the verb.
func (e *PanicError) Error() string {
	return fmt.Sprintf("flight: the node panics in verb %d, %v after its start: %s", e.Verb, e.At, e.What)
}

// player replays one record.
type player struct {
	n      *node.Node
	speaks [3]map[peer.ID]bool // answers to the questions
	said   []answer            // of strategies, within this verb
	in     entries
	verb   uint64
	digest digest
	step   Step
	held   entry // the entry behind those that were read
	more   bool  // there is one
}

// Replay steps a node through a record and tells of each verb, in order, until tell returns an error, which it returns.
// Errors: *DivergedError, *PanicError, ErrDamaged.
func (r *Record) Replay(tell func(*Step) error) error {
	cfg, err := r.Config()
	if err != nil {
		return err
	}
	return (&player{speaks: [3]map[peer.ID]bool{{}, {}, {}}}).replay(r, cfg, tell)
}

func (p *player) replay(r *Record, cfg node.Config, tell func(*Step) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{p.verb, p.in.now, fmt.Sprintf("%.1000v", v)}
		}
	}()
	for i, f := range questionsOf(&cfg) {
		*f = func(id peer.ID) bool { return p.speaks[i][id] }
	}
	if cfg.Membership.Detector = fd.PhiAccrual; r.Detector == "deadline" {
		cfg.Membership.Detector = fd.Deadline
	}
	for i, s := range r.stretches {
		if err := p.begin(cfg, i == 0, s); err != nil {
			return err
		}
		if err := p.run(tell); err != nil {
			return err
		}
	}
	return nil
}

// begin takes up a stretch. The first one makes the node; the state in front of a later one must be the node's.
func (p *player) begin(cfg node.Config, first bool, s stretch) error {
	p.in, p.verb = entries{b: s.entries, now: s.now}, s.first
	for i := range p.speaks {
		clear(p.speaks[i])
	}
	switch {
	case !first:
		state, err := freezeBare(p.n, 0)
		if err == nil && string(state) != string(s.state) {
			err = &DivergedError{p.verb, s.now, "the state of the node is not the one that was recorded here"}
		}
		return err
	case len(s.state) == 0:
		p.n = node.New(cfg)
		return nil
	}
	n, asked, err := thaw(cfg, s.state, true)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	p.n = n
	p.answerFor(asked)
	return nil
}

// answerFor makes strategies say again what was recorded.
func (p *player) answerFor(list []*Asked) {
	for _, q := range list {
		q.ask = func(*strategy.View, *route.ShardID) answer {
			if len(p.said) == 0 {
				return answer{Err: "the record has no answer of this strategy here"}
			}
			a := p.said[0]
			p.said = p.said[1:]
			return a
		}
	}
}

// next returns the next entry, and false at the end of the stretch.
func (p *player) next() (e entry, ok bool, err error) {
	if p.more {
		p.more = false
		return p.held, true, nil
	}
	if len(p.in.b) == 0 {
		return e, false, nil
	}
	if e, err = p.in.next(); err != nil {
		return e, false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, true, nil
}

// run replays a stretch.
func (p *player) run(tell func(*Step) error) error {
	var effects node.Effects
	for {
		e, ok, err := p.next()
		if err != nil || !ok {
			return err
		}
		switch {
		case e.verb():
			p.verb++
			if err := p.outside(); err != nil {
				return err
			}
			p.step = Step{Verb: p.verb, At: e.now, From: e.from, Kind: e.frame}
			if err := p.carryOut(&e); err != nil {
				return err
			}
		case e.kind == entryDrain:
			p.n.Drain(&effects)
			if sum := p.digest.sum(&effects); sum != e.sum {
				return &DivergedError{p.verb, p.step.At, fmt.Sprintf("what it does has digest %08x, recorded was %08x", sum, e.sum)}
			}
			p.step.Effects = &effects
			if err := tell(&p.step); err != nil {
				return err
			}
		case slices.Contains(questionKinds[:], e.kind): // asked between two verbs
			p.speaks[slices.Index(questionKinds[:], e.kind)][e.from] = e.ok
		}
	}
}

// outside reads what was asked of the outside within the verb that comes.
func (p *player) outside() error {
	p.said = p.said[:0]
	for {
		e, ok, err := p.next()
		if err != nil || !ok {
			return err
		}
		switch e.kind {
		case entryMoves, entryCosts, entryNoState:
			p.speaks[slices.Index(questionKinds[:], e.kind)][e.from] = e.ok
		case entryAnswer:
			var a answer
			d := decoder{b: e.body}
			if err := d.top(&a); err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			p.said = append(p.said, a)
		default:
			p.held, p.more = e, true
			return nil
		}
	}
}

// carryOut steps the node.
func (p *player) carryOut(e *entry) error {
	if e.kind == entryCommand {
		d := decoder{b: e.body, bare: true}
		if err := d.top(&p.step.Command); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		p.answerFor(d.asked)
	}
	switch e.kind {
	case entryTick:
		p.n.Tick(e.now)
		return nil
	case entryFrame, entryBare:
		p.step.Err = p.n.Handle(e.now, e.arrived, e.from, e.frame, e.body)
	case entryCommand:
		p.step.Err = p.n.Do(e.now, p.step.Command)
	}
	p.digest.failed(p.step.Err)
	return nil
}
