// Tests of loadgen pressure with real processes. Nothing here judges a rate.

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// A slow entity behind TellWait from several nodes: its mailbox fills, all that was accepted is handled, and every
// figure is there (SHD-4, ACC-5).
func TestPressure(t *testing.T) {
	l, out, errs := envtest.Line[pressureLine](t, program, "pressure",
		"pressure", "--entities=20", "--shards=4", "--senders=2", "--tellers=1", "--slow=20ms",
		"--mailbox=4096", "--rounds=1", "--duration=200ms", "--progress")
	require.Positive(t, l.Accepted)
	require.Equal(t, l.Accepted, l.Handled)
	require.Zero(t, l.Dropped)
	require.Zero(t, l.Lost)
	require.Zero(t, l.Failed)
	require.Empty(t, l.Reported)
	for _, name := range []string{"others_rate_even", "others_rate_slow", "others_ratio", "others_cpu_ratio",
		"waits_slow", "filled_slow",
		"first_mailbox_bytes_slow", "mailboxes_bytes_slow", "receiver_heap_mb_slow", "sender_heap_mb_slow", "tell_ns_even",
		"tellwait_ns_even"} {
		require.Positive(t, l.Figures[name], "%s in %s", name, out)
	}
	require.LessOrEqual(t, l.Figures["first_mailbox_bytes_slow"], float64(l.Bound))
	require.Contains(t, errs, "the others keep")
}

// A message that was dropped, or that nobody knows of, and a call that failed end the command with code 1.
func TestPressureVerdict(t *testing.T) {
	for _, l := range []pressureLine{{Dropped: 1}, {Lost: 1}, {Lost: -1}, {Failed: 1}} {
		require.ErrorIs(t, (&pressured{line: l}).verdict(), errPressure)
	}
	require.NoError(t, (&pressured{line: pressureLine{Accepted: 1, Handled: 1}}).verdict())
}
