// Tests of nodes that find each other as processes (BOOT-1 to BOOT-7).

package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/bootruns"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/long"
)

// Real processes and a DNS server: three that start together, one that may only join and ends by its time limit, a node
// of another name, all addresses changed at once. One cluster each time (BOOT-1, BOOT-3, BOOT-4, BOOT-5, BOOT-7).
func TestLongNodesFindEachOtherByDNS(t *testing.T) {
	long.Test(t)
	code, out, errs := program(t, "bootstrap-test", "--cases=form3,alone,changed", "--margin=500ms")
	require.Equal(t, exitOK, code, errs)
	var r bootruns.Result
	require.NoError(t, cli.ParseLine([]byte(out), "bootstrap", &r))
	require.Equal(t, 3, r.Runs)
	require.Zero(t, r.Wrong)
	require.NotNil(t, r.Form3)
	require.Equal(t, exitNoCluster, *r.Alone)
}

// A small number of simulated starts by the command (BOOT-7).
func TestStartsCommand(t *testing.T) {
	code, out, errs := program(t, "starts", "--starts=50")
	require.Equal(t, exitOK, code, errs)
	require.True(t, strings.HasPrefix(out, `starts {"first":1,"starts":50,`), out)
}
