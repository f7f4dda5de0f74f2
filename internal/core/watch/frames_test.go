// Tests of the frames.

package watch

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func items() []item {
	at := peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 3}
	return []item{
		{op: watches, Wanted: Wanted{1, 2, 3, "a"}},
		{op: unwatch, Wanted: Wanted{4, 5, 6, "bc"}},
		{op: ended, Wanted: Wanted{Number: 7}, cause: entity.EndedMoved, fence: route.MakeFence(1, 2, 3), instance: 300,
			home: at},
		{op: ended, Wanted: Wanted{Number: 8}},
	}
}

func TestFrames(t *testing.T) {
	var b []byte
	for _, i := range items() {
		b = i.append(b)
	}
	require.Equal(t, "010100000000000000"+"02000000"+"03000000"+"0161"+
		"020400000000000000"+"05000000"+"06000000"+"026263"+
		"030700000000000000"+"03"+"0000000000000001"+"00000002"+"00000003"+"ac02"+"01"+"040a000001bb1c"+"0300000000000000"+
		"030800000000000000"+"00"+"00000000000000000000000000000000"+"00"+"00", hex.EncodeToString(b))
	list, err := parse(b)
	require.NoError(t, err)
	require.Equal(t, items(), list)
	whole := 0
	for n := range b {
		if _, err := parse(b[:n]); err == nil {
			whole++
		}
	}
	require.Equal(t, len(items()), whole, "cut between entries alone")
}

func TestFramesRefuse(t *testing.T) {
	for name, i := range map[string]item{
		"operation": {op: 4, Wanted: Wanted{Number: 1}},
		"no id":     {op: watches, Wanted: Wanted{Number: 1}},
		"cause":     {op: ended, cause: entity.EndCause(entity.EndCauses)},
	} {
		_, err := parse(i.append(nil))
		require.ErrorIs(t, err, wire.ErrBadValue, name)
	}
}

func FuzzParse(f *testing.F) {
	for _, i := range items() {
		f.Add(i.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parse(b)
		if err != nil {
			return
		}
		var again []byte
		for i := range list {
			again = list[i].append(again)
		}
		back, err := parse(again)
		require.NoError(t, err)
		require.Equal(t, list, back)
	})
}
