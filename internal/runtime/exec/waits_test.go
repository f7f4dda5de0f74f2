// Tests of the callers that must not wait.

package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is remembered of callers is bounded, and what is not remembered is looked up.
func TestCallersAreBounded(t *testing.T) {
	var w Waits
	for pc := range uintptr(2 * callersMost) {
		require.False(t, w.mustNotBlock(pc+1))
	}
	require.Len(t, *w.known.Load(), callersMost)
}
