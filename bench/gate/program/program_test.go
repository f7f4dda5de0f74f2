// Tests of what the program does on command, in small. Nothing here judges a time.

package main

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// started returns a program with a node that hosts entities of one type.
func started(t *testing.T, a typeArgs) *program {
	t.Helper()
	p := &program{types: map[string]*target{}}
	t.Cleanup(func() {
		if p.node != nil {
			_ = p.node.Close()
		}
	})
	_, err := p.start(startArgs{Host: true, Types: []typeArgs{a}})
	require.NoError(t, err)
	_, err = p.await(awaitArgs{1})
	require.NoError(t, err)
	return p
}

func TestLoadsAreCounted(t *testing.T) {
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			p := started(t, typeArgs{Name: "x", Mode: mode, Shards: 4, Ring: 10})
			flush := func() uint64 {
				_, err := p.flush(flushArgs{"x", 10})
				require.NoError(t, err)
				u, err := p.usage(usageArgs{"x"})
				require.NoError(t, err)
				require.Positive(t, u.CPU)
				return u.Count
			}
			require.Zero(t, flush())
			for _, asks := range []int{0, 1, 20} {
				before := flush()
				_, err := p.load(loadArgs{Type: "x", Entities: 10, Asks: asks, For: 20 * time.Millisecond})
				require.NoError(t, err)
				require.Greater(t, flush(), before, "%d asks", asks)
			}
			before := flush()
			_, err := p.ring(ringArgs{Type: "x", Entities: 10, Run: 3, For: 20 * time.Millisecond})
			require.NoError(t, err)
			require.Greater(t, flush(), before)
		})
	}
}

func TestIdleEntitiesAreHeld(t *testing.T) {
	p := started(t, typeArgs{Name: "idle", Mode: "blocking", Shards: 4, Idle: true})
	_, err := p.fill(fillArgs{"idle", 100})
	require.NoError(t, err)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is resident")
	}
	h, err := p.held(none{})
	require.NoError(t, err)
	require.Positive(t, h.Resident)
}

func TestCallsAreRefused(t *testing.T) {
	p := &program{types: map[string]*target{}}
	_, err := p.load(loadArgs{Type: "x"})
	require.ErrorContains(t, err, `no type "x"`)
	_, err = op(p.usage)(json.RawMessage(`{"Type":"x","More":1}`))
	require.ErrorContains(t, err, "unknown field")
	_, err = p.start(startArgs{Host: true, Types: []typeArgs{{Name: "x", Mode: "fast", Shards: 1}}})
	require.ErrorContains(t, err, `no mode "fast"`)
	require.NoError(t, p.node.Close())
}

func TestIDs(t *testing.T) {
	require.Equal(t, "entity-000000000", entityID(0))
	require.Equal(t, "entity-000999999", entityID(999_999))
	require.Len(t, entityID(42), 16)
}

// A load that has not come round yet is counted too, where its entities are many.
func TestExactCounts(t *testing.T) {
	p := started(t, typeArgs{Name: "x", Mode: "worker", Shards: 4, Exact: true})
	for i := range 10 {
		require.NoError(t, p.types["x"].region.Tell(entityID(i), []byte{opTell}))
	}
	require.Eventually(t, func() bool { return p.types["x"].sink.count() == 10 }, time.Minute, time.Millisecond)
}
