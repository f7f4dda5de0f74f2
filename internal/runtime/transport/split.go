// Splitter: turns the reads of one connection into whole frames, in place as far as possible.

package transport

import (
	"slices"

	"github.com/kith-io/kith/wire"
)

// keepCarry is the largest buffer for a straddling frame that a connection keeps between frames, in bytes.
const keepCarry = 64 << 10

// splitter holds the part of a frame that one read began and a later one ends. It copies only that frame; all others
// are handed out where they were read. What it buffers grows with the bytes that arrived, never with a size that a
// header claims.
type splitter struct {
	lane  wire.Lane
	limit int
	carry []byte
	of    *InConn // its budget pays for what is kept beyond keepCarry; nil: no budget, for small limits
	paid  bool    // it has paid for some
}

// fit makes room in the carry for n bytes more. A *PartialError says that there is none.
func (s *splitter) fit(n int) error {
	need := len(s.carry) + n
	if need <= cap(s.carry) {
		return nil
	}
	if need <= keepCarry/2 {
		s.carry = slices.Grow(s.carry, n)
		return nil
	}
	grown := max(need, min(2*cap(s.carry), keepCarry))
	if need > keepCarry {
		grown = max(need, 2*cap(s.carry))
		if len(s.carry) >= wire.HeaderSize {
			grown = max(need, min(grown, int(wire.ParseHeader(s.carry).Size)))
		}
		if s.of != nil {
			if err := s.of.claim(grown - max(cap(s.carry), keepCarry)); err != nil {
				return err
			}
			s.paid = true
		}
	}
	s.carry = append(make([]byte, 0, grown), s.carry...)
	return nil
}

// trim lets a carry go that is larger than what is kept between frames.
func (s *splitter) trim() {
	if cap(s.carry) > keepCarry {
		s.carry = nil
	}
	if s.paid {
		s.paid = false
		s.of.t.partials.release(s.of)
	}
}

// drop lets everything go.
func (s *splitter) drop() {
	s.carry = nil
	s.trim()
}

// straddle feeds b to the frame that an earlier read began. It returns that frame when it is whole (valid until the
// next call), and what of b is left. With no frame under way it returns nil and b.
func (s *splitter) straddle(b []byte) (frame, rest []byte, err error) {
	if len(s.carry) == 0 {
		return nil, b, nil
	}
	if n := wire.HeaderSize - len(s.carry); n > 0 {
		n = min(n, len(b))
		s.carry = append(s.carry, b[:n]...)
		b = b[n:]
		if len(s.carry) < wire.HeaderSize {
			return nil, nil, nil
		}
	}
	if _, _, err := wire.Split(s.carry, s.lane, s.limit); err != nil {
		return nil, nil, err
	}
	n := min(int(wire.ParseHeader(s.carry).Size)-len(s.carry), len(b))
	if err := s.fit(n); err != nil {
		return nil, nil, err
	}
	s.carry = append(s.carry, b[:n]...)
	b = b[n:]
	if len(s.carry) < int(wire.ParseHeader(s.carry).Size) {
		return nil, nil, nil
	}
	frame = s.carry
	s.carry = s.carry[:0]
	s.trim()
	return frame, b, nil
}

// whole returns how many bytes of b are whole frames, how many frames they are, and how many of these are tells. An
// error stands at the first byte behind them.
func (s *splitter) whole(b []byte) (n, frames, tells int, err error) {
	return wire.SplitAll(b, s.lane, s.limit)
}

// each feeds b to take frame by frame; what is left of a frame is kept for the next call. It ends with the first error.
func (s *splitter) each(b []byte, take func(frame []byte) error) error {
	frame, rest, err := s.straddle(b)
	if frame != nil {
		err = take(frame)
	}
	for err == nil {
		var n int
		frame, n, err = wire.Split(rest, s.lane, s.limit)
		if err == nil && n == 0 {
			return s.keep(rest)
		}
		if err == nil {
			err = take(frame)
			rest = rest[n:]
		}
	}
	return err
}

// keep takes the part of a frame that is left at the end of a read.
func (s *splitter) keep(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	s.carry = s.carry[:0]
	if err := s.fit(len(b)); err != nil {
		return err
	}
	s.carry = append(s.carry, b...)
	return nil
}
