// Tests of the budget's strain: when senders hear of it, when it refuses, when there is room.

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBudgetStrain(t *testing.T) {
	require.Equal(t, Easy, BudgetStrain(90, 10, 100, 5))
	require.Equal(t, Strains, BudgetStrain(91, 10, 100, 5))
	require.Equal(t, Strains, BudgetStrain(100, MostStrained*5, 100, 5))
	require.Equal(t, Refuses, BudgetStrain(101, MostStrained*5, 100, 5))
	require.True(t, BudgetHasRoom(0, 0), "nothing is ever strained for a budget that is never used")
	require.True(t, BudgetHasRoom(87, 100))
	require.False(t, BudgetHasRoom(89, 100))
	require.False(t, BudgetHasRoom(1<<28-64<<10+1, 1<<28))
	require.True(t, BudgetHasRoom(1<<28-64<<10, 1<<28))
}
