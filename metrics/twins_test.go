// Tests of what the metrics say of other clusters of this one's name (JOIN-1, OPS-3).

package metrics

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A cluster has its id as a label, and other clusters differ in them from other sides of this one.
func TestTwinsAreSeen(t *testing.T) {
	s := &snapshot{view: &kith.View{ClusterID: 0xab, Birth: 7}, health: kith.Health{
		Duplicates: []kith.Duplicate{{ClusterID: 1}, {ClusterID: 0xab, Birth: 7}, {ClusterID: 1}}}}
	got := map[string]float64{}
	for _, f := range ofNode {
		switch f.name {
		case "kith_info", "kith_twins", "kith_splits":
			f.read(s, func(v float64, labels ...string) {
				name := f.name
				for _, l := range labels {
					name += " " + l
				}
				got[name] = v
			})
		}
	}
	require.Equal(t, map[string]float64{"kith_info 00000000000000ab 7": 1, "kith_twins": 2, "kith_splits": 1}, got)
}
