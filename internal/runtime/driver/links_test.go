// Tests of what the transport tells of connections: a path that is stuck is an incident.

package driver

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/wire"
)

// That a path hears nothing is reported to the embedder, and that this is over.
func TestSilentPathIsAnIncident(t *testing.T) {
	var mu sync.Mutex
	var told []entity.Incident
	p := newPair(t, func(cfg *Config) {
		cfg.Incident = func(i entity.Incident) {
			mu.Lock()
			defer mu.Unlock()
			if i.Kind == entity.Silent {
				told = append(told, i)
			}
		}
	})
	p.a.LinkSilent(p.b.self, wire.LaneData, 2, 3*time.Second)
	p.a.LinkSilent(p.b.self, wire.LaneData, 2, 0)
	name := "data connection 2 to " + p.b.self.String()
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 2
	})
	require.Equal(t, []entity.Incident{
		{Kind: entity.Silent, Took: 3 * time.Second, Running: true, Text: name}, {Kind: entity.Silent, Text: name},
	}, told)
	require.Equal(t, "silent", entity.Silent.String())
}

// A peer with an unknown version, since it is gone already, is none of an earlier build: what a node makes of one
// stays for as long as that incarnation is a member (PRT-1, CARD-3).
func TestUnknownVersionIsNotEarlier(t *testing.T) {
	for version, want := range map[uint16]bool{0: false, 1: true, 8: true, 9: false, 10: false} {
		require.Equal(t, want, before(version, partitionsSince), version)
	}
}
