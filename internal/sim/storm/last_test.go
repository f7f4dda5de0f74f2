// Stop messages in storms: every instance that is stopped gets the one of its type, as its last message.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
)

// TestStopMessagesInStorms: instances of types with a stop message get it, those with a state included; each call that
// follows, or that should not, is a violation (SHD-7).
func TestStopMessagesInStorms(t *testing.T) {
	said := 0
	for seed := uint64(1); seed <= 10; seed++ {
		s := newStorm(seed, nil, false)
		var made []*stormEntity
		for _, typ := range s.types {
			open := typ.Open
			if typ.StopMessage == nil || open == nil {
				continue
			}
			typ.Open = func(c *entity.Context) (entity.Handler, error) {
				h, err := open(c)
				switch h := h.(type) {
				case *stormEntity:
					made = append(made, h)
				case *statefulEntity:
					made = append(made, h.stormEntity)
				}
				return h, err
			}
		}
		require.Empty(t, s.run().violations, "seed %d", seed)
		for _, h := range made {
			if h.said {
				said++
			}
		}
	}
	require.Greater(t, said, 100)
}
