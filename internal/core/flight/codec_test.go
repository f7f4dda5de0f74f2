// Tests of the codec with a value that has everything that machines have.

package flight

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

// inner is pointed to from several places.
type inner struct {
	id   peer.ID
	next *inner
}

// everything has a field of each kind.
type everything struct {
	flag   bool
	small  int8
	large  uint64
	part   float64
	text   string
	addr   netip.Addr
	self   inner
	list   []inner
	none   []byte
	bytes  []byte
	table  map[peer.ID][]string
	empty  map[string]int
	array  [3]uint16
	first  *inner
	second *inner
	err    error
	cmd    any
	call   func() int
}

func init() { targets[reflect.TypeFor[inner]()] = true }

func sample() *everything {
	id := peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 7}
	e := &everything{flag: true, small: -3, large: 1 << 63, part: 0.25, text: "text",
		addr: netip.MustParseAddr("fe80::1%eth0"), list: []inner{{id: id}, {}}, bytes: []byte{1, 2},
		table: map[peer.ID][]string{id: {"a"}, {}: nil}, empty: map[string]int{}, array: [3]uint16{1, 2, 3},
		err: errors.New("words"),
		cmd: shard.RegisterCommand{Settings: shard.Settings{Name: "book"}, Strategy: strategy.Oldest{}}}
	e.first = &inner{id: id}
	e.first.next = e.first
	e.second = &e.list[1]
	return e
}

// What is read is what was written: pointers to one thing lead to one thing, into lists too, and a function stays.
func TestCodec(t *testing.T) {
	b, err := appendValue([]byte("x"), sample(), 0)
	require.NoError(t, err)
	got := everything{call: func() int { return 5 }, none: []byte{1}}
	d := decoder{b: b[1:]}
	require.NoError(t, d.top(&got))
	require.Same(t, got.first, got.first.next)
	require.Same(t, &got.list[1], got.second)
	require.Equal(t, 5, got.call())
	require.EqualError(t, got.err, "words")
	want := sample()
	got.call, got.first, want.first = nil, nil, nil
	require.Equal(t, want, &got)
	again, err := appendValue([]byte("x"), sample(), 0)
	require.NoError(t, err)
	require.Equal(t, b, again, "maps have no order")
}

// Bytes that are cut anywhere are an error, as is one too many; none of them allocates much.
func TestCodecTruncated(t *testing.T) {
	b, err := appendValue(nil, sample(), 0)
	require.NoError(t, err)
	for n := range b {
		d := decoder{b: b[:n]}
		require.ErrorIs(t, d.top(&everything{}), errBroken, "cut at %d", n)
	}
	d := decoder{b: append(b, 0)}
	require.ErrorIs(t, d.top(&everything{}), errBroken)
}

// What is no plain value is refused, as is what is too large, and nothing has been appended.
func TestCodecRefuses(t *testing.T) {
	for _, v := range []any{&struct{ c chan int }{}, &struct{ a any }{struct{ x int }{1}}, &struct{ p uintptr }{}} {
		b, err := appendValue([]byte("x"), v, 0)
		require.ErrorIs(t, err, errUnfit)
		require.Equal(t, "x", string(b))
	}
	_, err := appendValue(nil, sample(), 20)
	require.ErrorIs(t, err, errTooLarge)
}
