// Entries: the inputs of a node as bytes. Their kinds and forms are frozen, golden bytes hold them; commands and states
// inside them are as the layout says.

package flight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The kinds of entries. Each verb is followed by what was asked of the outside within it, and most by a drain.
const (
	entryTick    byte = 1 // time since the last verb
	entryFrame   byte = 2 // time, age, sender, kind, body
	entryCommand byte = 3 // time, command
	entryDrain   byte = 4 // digest of the effects, 32 bits
	entryMoves   byte = 5 // peer, whether it understands moves from now on
	entryAnswer  byte = 6 // of a strategy of somebody's own
	entryBare    byte = 7 // a frame, and how many bytes were left out at its end
	entryCosts   byte = 8 // peer, whether it understands costs of moves from now on
	entryNoState byte = 9 // peer, whether it knows nothing of states from now on
)

// maxIDs bounds the identities that have numbers in one stretch.
const maxIDs = 4096

func appendVarint(b []byte, n int64) []byte   { return binary.AppendVarint(b, n) }
func appendUvarint(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }
func appendBytes(b, p []byte) []byte          { return append(binary.AppendUvarint(b, uint64(len(p))), p...) }

func truth(ok bool) byte {
	if ok {
		return 1
	}
	return 0
}

// entry is one entry, read.
type entry struct {
	kind    byte
	now     time.Duration // of a verb
	arrived time.Duration
	from    peer.ID
	frame   wire.Kind
	body    []byte // of a frame; or a command or an answer, encoded
	sum     uint32
	ok      bool
}

func (e *entry) verb() bool {
	return e.kind >= entryTick && e.kind <= entryCommand || e.kind == entryBare
}

// entries reads those of one stretch.
type entries struct {
	b   []byte
	now time.Duration
	ids []peer.ID
}

// errCut is what is wrong with an entry that cannot be read.
var errCut = errors.New("broken entry")

// next reads the next entry. An error leaves the rest unread for good.
func (s *entries) next() (e entry, err error) {
	size := len(s.b)
	e.kind, s.b = s.b[0], s.b[1:]
	switch e.kind {
	case entryTick, entryFrame, entryCommand, entryBare:
		err = s.readVerb(&e)
	case entryDrain:
		var b []byte
		if b, err = s.take(4); err == nil {
			e.sum = binary.LittleEndian.Uint32(b)
		}
	case entryMoves, entryCosts, entryNoState:
		if e.from, err = s.id(); err == nil {
			var b []byte
			if b, err = s.take(1); err == nil {
				e.ok = b[0] == 1
			}
		}
	case entryAnswer:
		e.body, err = s.bytes()
	default:
		err = fmt.Errorf("%w: kind %d", errCut, e.kind)
	}
	if err != nil {
		err = fmt.Errorf("%w, %d bytes before the end of its stretch", err, size)
	}
	return e, err
}

func (s *entries) readVerb(e *entry) error {
	since, err := s.varint()
	if err != nil {
		return err
	}
	s.now += time.Duration(since)
	e.now = s.now
	switch e.kind {
	case entryFrame, entryBare:
		age, err := s.varint()
		if err != nil {
			return err
		}
		e.arrived = s.now - time.Duration(age)
		if e.from, err = s.id(); err != nil {
			return err
		}
		kind, err := s.uvarint()
		if err != nil {
			return err
		}
		if kind > 0xff {
			return fmt.Errorf("%w: frame kind %d", errCut, kind)
		}
		e.frame = wire.Kind(kind)
		if e.body, err = s.bytes(); err == nil && e.kind == entryBare {
			err = s.bare(e)
		}
		return err
	case entryCommand:
		e.body, err = s.bytes()
	}
	return err
}

func (s *entries) varint() (int64, error) {
	n, size := binary.Varint(s.b)
	if size <= 0 {
		return 0, fmt.Errorf("%w: a cut number", errCut)
	}
	s.b = s.b[size:]
	return n, nil
}

func (s *entries) uvarint() (uint64, error) {
	n, size := binary.Uvarint(s.b)
	if size <= 0 {
		return 0, fmt.Errorf("%w: a cut number", errCut)
	}
	s.b = s.b[size:]
	return n, nil
}

func (s *entries) take(n uint64) ([]byte, error) {
	if n > uint64(len(s.b)) {
		return nil, fmt.Errorf("%w: a length beyond the end", errCut)
	}
	b := s.b[:n:n]
	s.b = s.b[n:]
	return b, nil
}

func (s *entries) bytes() ([]byte, error) {
	n, err := s.uvarint()
	if err != nil {
		return nil, err
	}
	return s.take(n)
}

func (s *entries) id() (id peer.ID, err error) {
	n, err := s.uvarint()
	if err != nil {
		return id, err
	}
	if n > 0 {
		if n > uint64(len(s.ids)) {
			return id, fmt.Errorf("%w: an unknown peer", errCut)
		}
		return s.ids[n-1], nil
	}
	r := wire.NewReader(0, s.b)
	id = peer.ReadID(&r)
	if err := r.Err(); err != nil {
		return id, fmt.Errorf("%w: %w", errCut, err)
	}
	s.b = s.b[r.Offset():]
	if len(s.ids) < maxIDs {
		s.ids = append(s.ids, id)
	}
	return id, nil
}
