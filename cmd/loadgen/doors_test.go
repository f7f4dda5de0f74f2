// Tests of loadgen doors, with real processes too. Nothing here judges a rate or a time.

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/door"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// Beside a crowd at its ports with HTTP no probe of a node fails, newcomers come in, asks are answered, and nobody is
// downed (OPS-1, SEC-1).
func TestDoors(t *testing.T) {
	for name, args := range map[string][]string{"plain": nil, "tls": {"--tls"}} {
		t.Run(name, func(t *testing.T) {
			l, _, errs := envtest.Line[doorsLine](t, program, "doors",
				append([]string{"doors", "--readers=10", "--streams=20", "--idle=400", "--silent=600",
					"--rate=200", "--duration=3s", "--probe-limit=30s", "--progress"}, args...)...)
			require.Positive(t, l.Probes)
			require.Zero(t, l.ProbesFailed, errs)
			require.Positive(t, l.Joins)
			require.Positive(t, l.Asked)
			require.Zero(t, l.HTTP2)
			require.Zero(t, l.AsksFailed)
			require.Equal(t, 3, l.Members)
		})
	}
	code, _, errs := program(t, "doors", "--readers=-1", "--duration=1ms")
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, errs, "--readers")
	require.Contains(t, errs, "--duration")
}

// TestLateProbe: a probe that a busy machine keeps from asking for as long as a node waits for first bytes proves
// nothing about the node. One that asked in time does, however long it waited.
func TestLateProbe(t *testing.T) {
	t0 := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	for name, k := range map[string]struct {
		p    *pace
		late bool
	}{
		"not connected":             {&pace{}, false},
		"asked at once":             {&pace{connected: t0, asked: at(time.Millisecond)}, false},
		"asked late":                {&pace{connected: t0, asked: at(door.NewTime)}, true},
		"never asked":               {&pace{connected: t0}, true},
		"a slow handshake":          {&pace{connected: t0, spoke: t0, agreed: at(time.Hour), asked: at(time.Hour)}, false},
		"no handshake":              {&pace{connected: t0, spoke: t0}, false},
		"a late handshake":          {&pace{connected: t0, spoke: at(door.NewTime)}, true},
		"late behind the handshake": {&pace{connected: t0, spoke: t0, agreed: at(time.Second)}, true},
	} {
		require.Equal(t, k.late, k.p.late(at(2*time.Minute)), name)
	}
}
