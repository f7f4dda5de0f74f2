// Tests of loadgen doors with real processes. Nothing here judges a rate or a time.

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

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
