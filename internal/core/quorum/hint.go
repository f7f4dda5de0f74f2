// Hints: writes that a replica did not acknowledge, kept at their broker until it does.

package quorum

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// hintBit marks numbers in messages that are those of hints.
const hintBit = 1 << 63

// mostDelivered is how many hints a round sends.
const mostDelivered = 64

func hintKey(number uint64) []byte { return wire.AppendU64([]byte{'h'}, number) }

// hint keeps a write for a replica, unless there are too many.
func (d *shelf) hint(to peer.ID, key []byte, e Entry) {
	d.hinted++
	h := &hint{number: d.hinted, to: to, at: d.wall, key: key, entry: e, size: len(key) + e.size()}
	total := h.size
	for _, o := range d.hints {
		total += o.size
	}
	if total > d.cfg.MaxHints {
		d.stats.HintsGone++
		return
	}
	d.hints = append(d.hints, h)
	b := wire.AppendBytes(wire.AppendU64(peer.AppendID(nil, to), uint64(h.at)), key)
	d.pending = append(d.pending, Change{Key: hintKey(h.number), Value: AppendEntry(b, e)})
}

// loadHints reads the hints of a disk.
func (d *shelf) loadHints() error {
	defer func() { slices.SortFunc(d.hints, func(a, b *hint) int { return cmp.Compare(a.number, b.number) }) }()
	return d.disk.Each([]byte{'h'}, nil, func(k, v []byte) bool {
		r := wire.NewReader(0, v)
		h := &hint{to: peer.ReadID(&r), at: int64(r.U64()), key: slices.Clone(r.Bytes(d.cfg.MaxKey))}
		h.entry = ReadEntry(&r, d.cfg.maxEntry(), d.cfg.MaxValue).own()
		at := wire.NewReader(0, k[1:])
		if h.number = at.U64(); r.Done() == nil && at.Done() == nil {
			h.size = len(h.key) + h.entry.size()
			d.hinted = max(d.hinted, h.number)
			d.hints = append(d.hints, h)
		}
		return true
	})
}

// delivered drops a hint once its replica has it. One that is refused stays until it is too old.
func (d *shelf) delivered(from peer.ID, x *message) {
	d.drop(func(h *hint) bool { return h.number == x.number&^hintBit && h.to == from && x.reason == done })
}

// drop forgets hints.
func (d *shelf) drop(which func(*hint) bool) {
	d.hints = slices.DeleteFunc(d.hints, func(h *hint) bool {
		if !which(h) {
			return false
		}
		d.pending = append(d.pending, Change{Key: hintKey(h.number)})
		return true
	})
}
