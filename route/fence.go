// Fence: sixteen bytes that only grow from owner to owner of a shard.

package route

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// FenceSize is the size of a Fence in bytes.
const FenceSize = 16

// Fence identifies one ownership of one shard. It is big-endian and ordered byte by byte: cluster birth (8 bytes),
// term (4: the up-number of the coordinator's member), epoch (4: one sequence per type and term). A store that
// remembers the highest fence it saw and refuses lower ones refuses every late owner. The zero Fence is no ownership.
type Fence [FenceSize]byte

// MakeFence builds a fence from its parts.
func MakeFence(birth uint64, term, epoch uint32) Fence {
	var f Fence
	binary.BigEndian.PutUint64(f[:], birth)
	binary.BigEndian.PutUint32(f[8:], term)
	binary.BigEndian.PutUint32(f[12:], epoch)
	return f
}

// Birth returns the birth of the cluster that issued f.
func (f Fence) Birth() uint64 { return binary.BigEndian.Uint64(f[:]) }

// Term returns the up-number of the coordinator that issued f.
func (f Fence) Term() uint32 { return binary.BigEndian.Uint32(f[8:]) }

// Epoch returns the position of f in its term.
func (f Fence) Epoch() uint32 { return binary.BigEndian.Uint32(f[12:]) }

// IsZero reports whether f is no ownership.
func (f Fence) IsZero() bool { return f == Fence{} }

// Compare orders fences: -1, 0 or +1.
func (f Fence) Compare(g Fence) int { return bytes.Compare(f[:], g[:]) }

// ParseFence reads a fence from its 32 hexadecimal digits, which is how String and MarshalText write it, or from
// birth.term.epoch, which is shorter to type: birth in hexadecimal, the others in decimal.
func ParseFence(s string) (Fence, error) {
	if strings.IndexByte(s, '.') < 0 {
		return fenceOf(s)
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return Fence{}, fmt.Errorf("kith: fence %.64q must be birth.term.epoch", s)
	}
	birth, bad1 := strconv.ParseUint(parts[0], 16, 64)
	term, bad2 := strconv.ParseUint(parts[1], 10, 32)
	epoch, bad3 := strconv.ParseUint(parts[2], 10, 32)
	if bad1 != nil || bad2 != nil || bad3 != nil {
		return Fence{}, fmt.Errorf("kith: fence %.64q must be birth.term.epoch", s)
	}
	return MakeFence(birth, uint32(term), uint32(epoch)), nil
}

// fenceOf reads hexadecimal digits.
func fenceOf(digits string) (f Fence, err error) {
	if len(digits) != hex.EncodedLen(FenceSize) {
		return f, fmt.Errorf("kith: fence of %d characters, must be %d digits", len(digits), hex.EncodedLen(FenceSize))
	}
	if _, err := hex.Decode(f[:], []byte(digits)); err != nil {
		return Fence{}, fmt.Errorf("kith: fence %q: %w", digits, err)
	}
	return f, nil
}

// MarshalText gives what String gives.
func (f Fence) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText takes what ParseFence takes.
func (f *Fence) UnmarshalText(text []byte) error {
	got, err := ParseFence(string(text))
	if err == nil {
		*f = got
	}
	return err
}

// Value gives the sixteen bytes to a column of package database/sql (bytea, binary(16), blob), where they sort as
// fences do: a store refuses late owners with a condition like "where fence <= ?". A column of text gets what String
// gives.
func (f Fence) Value() (driver.Value, error) { return f[:], nil }

// Scan reads f from a column: sixteen bytes, 32 hexadecimal digits, or NULL, which is the zero Fence, lower than any
// other. birth.term.epoch is refused: it does not sort as fences do.
func (f *Fence) Scan(column any) error {
	var digits string
	switch v := column.(type) {
	case nil:
		*f = Fence{}
		return nil
	case string:
		digits = v
	case []byte:
		if len(v) == FenceSize {
			copy(f[:], v)
			return nil
		}
		digits = string(v)
	default:
		return fmt.Errorf("kith: a fence is no %T", column)
	}
	got, err := fenceOf(digits)
	if err == nil {
		*f = got
	}
	return err
}

// String gives 32 hexadecimal digits, which sort as fences do: the one spelling of a fence in logs, spans, JSON and
// columns of text.
func (f Fence) String() string { return hex.EncodeToString(f[:]) }
