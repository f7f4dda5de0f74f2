// Surveys: what all members have of a type, asked by this node, and answered by it; and what a program wants of the
// balance of a type.

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kith-io/kith/internal/exec"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/survey"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// errStranger is the fault of what only members may say.
var errStranger = errors.New("driver: from a node that is no member")

// Survey asks all members what they have of a type, this node included. It returns when all have answered or ctx ends,
// which is no error: the result says who has not answered. Members of a version that knows no surveys never do.
func Survey(ctx context.Context, r *Region) (survey.Result, error) {
	d := r.d
	if err := d.Err(); err != nil {
		return survey.Result{}, err
	}
	var ids []peer.ID
	for _, m := range d.View().Members {
		if m.Status != membership.Down {
			ids = append(ids, m.ID)
		}
	}
	return d.surveys.Ask(ctx, r.id, ids, func(to peer.ID, body []byte) {
		kind := wire.KindSurvey
		if to == d.self {
			d.inbox.frame(to, to, kind, d.now(), body)
		} else {
			_ = d.wires.Send(peer.Mail{To: to, Kind: kind, Body: body}) // it is put again
		}
	}), nil
}

// surveyed takes a question or an answer of a member. Control goroutine.
func surveyed(d *Driver, n *node.Node, f *frame) {
	m, in := d.View().Member(f.from)
	if !in || m.Status == membership.Down {
		d.nonsense.note(f.from, f.kind, errStranger)
		return
	}
	if f.kind == wire.KindSurveyAnswer {
		a, err := survey.ParseAnswer(f.body)
		if err != nil {
			d.nonsense.note(f.from, f.kind, err)
			return
		}
		d.surveys.Take(f.from, a)
		return
	}
	q, err := survey.ParseQuestion(f.body)
	switch {
	case err != nil:
		d.nonsense.note(f.from, f.kind, err)
	case f.from == d.self:
		d.surveys.Take(d.self, answer(d, n, q))
	default: // one that is lost is asked for again
		_ = d.wires.Send(peer.Mail{To: f.from, Kind: wire.KindSurveyAnswer, Body: survey.AppendAnswer(nil, answer(d, n, q))})
	}
}

// answer says what this node has of a type, at most survey.MaxShards of its shards. Control goroutine.
func answer(d *Driver, n *node.Node, q survey.Question) *survey.Answer {
	a := &survey.Answer{Question: q}
	a.Moves, a.Term = node.Moves(n, q.Type)
	a.Moves = a.Moves[:min(len(a.Moves), survey.MaxMoves)]
	r := d.regions.Load().byID[q.Type]
	if r == nil {
		return a
	}
	a.Known, a.Shards = true, r.shards
	page := firstShards{from: q.From, upTo: route.NoShard}
	for h := range exec.Hosts(r.hosts) { // what lives here, not what the type has
		live := exec.Entities(h)
		a.Hosted++
		a.Entities += live
		page.add(survey.Shard{ID: h.Shard(), Stopping: h.Ending(), Entities: uint32(min(live, math.MaxUint32))})
	}
	a.List, a.More = page.end()
	return a
}

// firstShards gathers as many shards from a first one on as an answer holds, by number, out of any order: it keeps at
// most twice as many at a time.
type firstShards struct {
	from, upTo route.ShardID // those between them may be among the first
	list       []survey.Shard
}

func (f *firstShards) add(s survey.Shard) {
	if s.ID < f.from || s.ID > f.upTo {
		return
	}
	if f.list = append(f.list, s); len(f.list) > 2*survey.MaxShards {
		f.cut()
	}
}

// cut keeps one more than an answer holds.
func (f *firstShards) cut() {
	slices.SortFunc(f.list, func(x, y survey.Shard) int { return cmp.Compare(x.ID, y.ID) })
	if len(f.list) > survey.MaxShards {
		f.list = f.list[:survey.MaxShards+1]
		f.upTo = f.list[survey.MaxShards].ID
	}
}

// end returns them, and whether there are more.
func (f *firstShards) end() (list []survey.Shard, more bool) {
	f.cut()
	return f.list[:min(len(f.list), survey.MaxShards)], len(f.list) > survey.MaxShards
}

// Regions lists the types of a node in the order of their registration.
func Regions(d *Driver) []*Region { return slices.Clone(d.regions.Load().list) }

// Move asks the coordinator of a type to move a shard, and waits until the move has begun, or ctx ends.
func Move(ctx context.Context, r *Region, s route.ShardID, to peer.ID) error {
	d, answer := r.d, make(chan error, 1)
	nonce := d.wanted.add(answer)
	defer d.wanted.take(nonce)
	err := d.call(ctx, shard.AskMoveCommand{Type: r.id, Shard: s, To: to, Nonce: nonce})
	if err == nil {
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = ctx.Err()
		case <-d.done:
			err = d.ended()
		}
	}
	if err != nil {
		return fmt.Errorf("kith: move shard %d of type %q to %s: %w", s, r.typ.Name, to, err)
	}
	return nil
}

// moveAnswered hands an answer to whoever wanted a move, if that one waits still.
func moveAnswered(d *Driver, a shard.MoveAnswer) {
	if answer := d.wanted.take(a.Nonce); answer != nil {
		answer <- a.Err
	}
}

// SetReady declares whether this node may be given shards of a type.
func SetReady(ctx context.Context, r *Region, ready bool) error {
	if err := r.d.call(ctx, shard.ReadyCommand{Type: r.id, Ready: ready}); err != nil {
		return fmt.Errorf("kith: readiness of type %q: %w", r.typ.Name, err)
	}
	return nil
}

// SetHomes updates the wishes of a type that goes by strategy.External.
func SetHomes(ctx context.Context, r *Region, version uint64, wishes []strategy.Wish) error {
	cmd := shard.WishesCommand{Type: r.id, Version: version, Wishes: slices.Clone(wishes)}
	if err := r.d.call(ctx, cmd); err != nil {
		return fmt.Errorf("kith: homes of type %q: %w", r.typ.Name, err)
	}
	return nil
}
