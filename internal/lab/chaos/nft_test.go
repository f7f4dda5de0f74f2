// Golden rules for nft.

package chaos

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaultingRules(t *testing.T) {
	l := newLinks(3)
	l[0][2].Cut = allLanes
	l[1][2].Cut, l[1][2].Loss, l[1][2].Reset = 1<<dataLane|1<<bulkLane, 200, 5
	l[2][0].Cut = 1 << controlLane
	addr := func(slot int) string { return fmt.Sprintf("10.0.0.%d", slot+1) }
	require.Equal(t, `flush chain inet kith faults
add rule inet kith faults ip saddr 10.0.0.1 drop
add rule inet kith faults ip saddr 10.0.0.2 ct mark { 2, 3 } drop
add rule inet kith faults ip saddr 10.0.0.2 numgen random mod 1000 < 200 drop
add rule inet kith faults ip saddr 10.0.0.2 tcp flags & rst == 0 numgen random mod 1000 < 5 reject with tcp reset
`, faulting(l, 2, addr))
	require.Equal(t, "flush chain inet kith faults\nadd rule inet kith faults ip saddr 10.0.0.3 ct mark 1 drop\n",
		faulting(l, 0, addr))
	require.Equal(t, "flush chain inet kith faults\n", faulting(l, 1, addr))
	require.Contains(t, marking(), "@ih,64,32 0x4b495448 @ih,128,8 1 ct mark set 2")
}
