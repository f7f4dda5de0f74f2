// Moves by hand: a shard is moved because somebody wants it, not for balance nor for a leaver.

package shard

import "fmt"

// beginMove carries out a MoveCommand.
func beginMove(m *Machine, cmd MoveCommand) error {
	t := m.types[cmd.Type]
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
		return fmt.Errorf("%w: shard %d", ErrMoves, cmd.Shard)
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
		return fmt.Errorf("%w: %s has not registered the type", ErrIneligible, cmd.To)
	case !to.Eligible():
		return fmt.Errorf("%w: %s: %s", ErrIneligible, cmd.To, to.Why())
	}
	mv.begin(cmd.Shard, cmd.To)
	return nil
}
