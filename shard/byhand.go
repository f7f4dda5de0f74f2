// By hand: what the program of a node says about the balance of a type: moves that it wants, whether it is ready to
// be given shards, where shards are to live.

package shard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// beginMove carries out a MoveCommand.
func beginMove(m *Machine, cmd MoveCommand) error {
	t := typeOf(m, cmd.Type)
	if t == nil {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(cmd.Type))
	}
	c := t.coord
	if c == nil || !c.ready {
		return ErrNotCoordinator
	}
	if uint32(cmd.Shard) >= c.settings.Shards {
		return fmt.Errorf("%w: shard %d of %d", ErrBadCommand, cmd.Shard, c.settings.Shards)
	}
	mv, r := c.moves, c.records.Peek(cmd.Shard)
	switch {
	case r.phase == moving:
		return fmt.Errorf("%w: shard %d", ErrMoveInProgress, cmd.Shard)
	case r.phase != alive:
		return fmt.Errorf("%w: shard %d", ErrNoHome, cmd.Shard)
	case r.home.id == cmd.To:
		return fmt.Errorf("%w: shard %d at %s", ErrAtHome, cmd.Shard, cmd.To)
	}
	if _, in := m.view.Member(cmd.To); !in {
		return fmt.Errorf("%w: %s", ErrUnknownNode, cmd.To)
	}
	if err := mv.allowed(); err != nil {
		return err
	}
	switch to := mv.view().Region(cmd.To); {
	case to == nil:
		return fmt.Errorf("%w: %s has not registered the type, or drains", ErrIneligible, cmd.To)
	case !to.Eligible():
		return fmt.Errorf("%w: %s: %s", ErrIneligible, cmd.To, to.Why())
	}
	mv.begin(cmd.Shard, cmd.To)
	return nil
}

// moveWanted asks the coordinator of a type to move a shard.
type moveWanted struct {
	head
	Nonce uint64 // of the asker's, not zero
	Shard route.ShardID
	To    peer.ID
}

func (moveWanted) kind() wire.Kind        { return wire.KindMoveWanted }
func (w moveWanted) shard() route.ShardID { return w.Shard }

func (w moveWanted) append(b []byte) []byte {
	b = wire.AppendUvarint(wire.AppendU64(w.head.append(b), w.Nonce), uint64(w.Shard))
	return peer.AppendID(b, w.To)
}

func readMoveWanted(r *wire.Reader) message {
	w := moveWanted{head: readHead(r), Nonce: readNonce(r), Shard: readShard(r, 0)}
	w.To = readPeer(r)
	return w
}

func readNonce(r *wire.Reader) uint64 {
	n := r.U64()
	if r.Err() == nil && n == 0 {
		r.Fail(wire.ErrBadValue)
	}
	return n
}

// moveAnswer says that a move which was asked for has begun, or why not: which of moveErrors, and its text.
type moveAnswer struct {
	head
	Nonce  uint64
	Code   uint8
	Detail string
}

// maxDetail bounds the text of an answer, in bytes.
const maxDetail = 255

// moveErrors are the answers, by their number on the wire: adding is fine, changing is not.
var moveErrors = []error{0: nil, 1: ErrNotCoordinator, 2: ErrNoHome, 3: ErrMoveInProgress,
	4: ErrUnknownNode, 5: ErrAtHome,
	6: ErrIneligible, 7: ErrTooManyMoves, 8: ErrUnstable, 9: ErrOldPeer, 10: ErrUnknownType, 11: ErrBadCommand}

func (moveAnswer) kind() wire.Kind { return wire.KindMoveAnswer }

func (a moveAnswer) append(b []byte) []byte {
	return wire.AppendString(wire.AppendU8(wire.AppendU64(a.head.append(b), a.Nonce), a.Code), a.Detail)
}

func readMoveAnswer(r *wire.Reader) message {
	a := moveAnswer{head: readHead(r), Nonce: readNonce(r), Code: r.U8()}
	a.Detail = r.String(maxDetail)
	if r.Err() == nil && (int(a.Code) >= len(moveErrors) || a.Code == 0 && a.Detail != "") {
		r.Fail(wire.ErrBadValue)
	}
	return a
}

// askMove carries out an AskMoveCommand: here, if this node coordinates the type, or by asking the coordinator.
func askMove(m *Machine, cmd AskMoveCommand) error {
	t := typeOf(m, cmd.Type)
	if t == nil || t.region.idle() {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(cmd.Type))
	}
	g := t.region
	_, twice := g.asked[cmd.Nonce]
	switch {
	case uint32(cmd.Shard) >= g.settings.Shards:
		return fmt.Errorf("%w: shard %d of %d", ErrUnknownShard, cmd.Shard, g.settings.Shards)
	case cmd.To.Addr.IsZero() || cmd.To.Inc == 0: // no message can say it
		return fmt.Errorf("%w: %s", ErrUnknownNode, cmd.To)
	case cmd.Nonce == 0 || twice:
		return fmt.Errorf("%w: nonce %d", ErrBadCommand, cmd.Nonce)
	case !g.joined:
		return fmt.Errorf("%w: it is not known yet which does", ErrNotCoordinator)
	case !speaksMoves(m, g.to):
		return fmt.Errorf("%w: %s, which coordinates the type", ErrOldPeer, g.to)
	case len(g.asked) >= m.cfg.MaxMoves:
		return fmt.Errorf("%w: %d that this node has asked for", ErrTooManyMoves, len(g.asked))
	}
	if g.asked == nil {
		g.asked = map[uint64]peer.ID{}
	}
	g.asked[cmd.Nonce] = g.to
	m.post(g.to, moveWanted{m.head(t.id, g.term), cmd.Nonce, cmd.Shard, cmd.To})
	return nil
}

// onMoveWanted begins a move that a member asks for, and answers.
func onMoveWanted(m *Machine, from peer.ID, w moveWanted) {
	err := ErrNotCoordinator
	if t := m.types[w.Type]; t != nil && t.coord != nil && t.coord.term == w.Term {
		err = beginMove(m, MoveCommand{w.Type, w.Shard, w.To})
	}
	a := moveAnswer{head: w.head, Nonce: w.Nonce}
	if err != nil {
		for i, is := range moveErrors[1:] {
			if errors.Is(err, is) {
				a.Code, a.Detail = uint8(i+1), strings.TrimPrefix(err.Error(), is.Error())
			}
		}
		a.Detail = a.Detail[:min(len(a.Detail), maxDetail)]
	}
	m.post(from, a)
}

// onMoveAnswer hands an answer to the asker.
func onMoveAnswer(m *Machine, from peer.ID, a moveAnswer) {
	t := typeOf(m, a.Type)
	if t == nil || t.region == nil || t.region.asked[a.Nonce] != from {
		return
	}
	delete(t.region.asked, a.Nonce)
	var err error
	if a.Code != 0 {
		err = fmt.Errorf("%w%s (answer of %s)", moveErrors[a.Code], a.Detail, from)
	}
	m.out.Answers = append(m.out.Answers, MoveAnswer{t.id, a.Nonce, err})
}

// setReady carries out a ReadyCommand.
func setReady(m *Machine, c ReadyCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region.idle() {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	g := t.region
	if g.unready == !c.Ready {
		return nil
	}
	if g.unready = !c.Ready; !g.to.IsZero() && m.view != nil && !m.over {
		g.retry.reset(m)
		m.announce(t)
	}
	return nil
}

// setWishes carries out a WishesCommand.
func setWishes(m *Machine, c WishesCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region.idle() {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	e, is := t.strategy.(*strategy.External)
	if !is || e == nil {
		return fmt.Errorf("%w: type %q", ErrNotExternal, t.region.settings.Name)
	}
	return e.Update(c.Version, c.Wishes)
}
