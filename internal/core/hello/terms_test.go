// Tests of terms: which nodes say them, and when a hello is judged by one.

package hello

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A hello that offers older versions alone says nothing that came later (JOIN-1).
func TestTermsAreSaidSinceTheirVersion(t *testing.T) {
	terms := []Term{{Setting: Setting{"a", "1"}}, {Setting: Setting{"b", "2"}, Since: 7}}
	require.Equal(t, []Setting{{"a", "1"}, {"b", "2"}}, Said(terms, wire.Versions{Newest: 7, Oldest: 1}))
	require.Equal(t, []Setting{{"a", "1"}}, Said(terms, wire.Versions{Newest: 6, Oldest: 1}))
	require.Empty(t, Said(nil, wire.Spoken()))
}

// Every hello is judged by a term, on every lane, but for one that the join between the two compares; what only one of
// them says is not compared (JOIN-1).
func TestTermsAreCompared(t *testing.T) {
	for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData, wire.LaneBulk} {
		for _, c := range []struct {
			join         bool
			theirs, ours uint64 // clusters
			refused      bool
		}{
			{false, 0, 0, true}, {false, 5, 0, true}, {false, 0, 5, true}, {false, 5, 5, true},
			{true, 0, 0, true}, {true, 5, 0, false}, {true, 0, 5, false}, {true, 5, 5, true},
		} {
			h := exampleHello()
			h.Lane, h.ClusterID, h.Settings, h.ToInc = lane, c.theirs, []Setting{{"window", "1"}}, 0
			a := Acceptor{Self: peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 9}, Name: h.Name, ClusterID: c.ours,
				Window: 1 << 30, Terms: []Term{{Setting: Setting{"window", "2"}, Since: 7, Join: c.join}}}
			refused := a.Judge(&h)
			require.Equal(t, c.refused, refused != nil, "%s %+v", lane, c)
			if c.refused {
				require.Equal(t, &RefusedError{Reason: RefusedSetting, Key: "window", Ours: "1", Theirs: "2"}, refused)
				require.True(t, refused.Differs())
			}
			a.Terms[0].Key = "another"
			require.Nil(t, a.Judge(&h))
		}
	}
}
