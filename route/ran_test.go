// Tests of what errors say of execution.

package route

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is not known to be harmless may have run, and an error that knows more than its reason says so, also when it is
// wrapped. Pins SHD-5, ACC-2.
func TestMayHaveRun(t *testing.T) {
	require.True(t, MayHaveRun(nil))
	require.True(t, MayHaveRun(errors.New("another's")))
	require.True(t, MayHaveRun(context.DeadlineExceeded))
	for why := OK + 1; why < reasonCount; why++ {
		err := fmt.Errorf("at 10.0.0.1:80: %w", why.Err())
		not, did := NotRun(err), Ran(err)
		require.False(t, MayHaveRun(fmt.Errorf("again: %w", not)), why)
		require.True(t, MayHaveRun(fmt.Errorf("again: %w", did)), why)
		require.ErrorIs(t, not, why.Err())
		require.ErrorIs(t, did, why.Err())
		require.EqualError(t, not, err.Error())
		require.Equal(t, why, ReasonOf(not))
		require.Equal(t, MayHaveRun(why.Err()), MayHaveRun(&PeerError{Reason: why}), why)
	}
	require.NoError(t, NotRun(nil))
	require.NoError(t, Ran(nil))
	require.False(t, MayHaveRun(ErrExpired))
	require.True(t, MayHaveRun(ErrTimeout))
	// An older node tells no limit, and says the same of what its handler answered.
	require.True(t, MayHaveRun(&RefusedError{Reason: TooLarge}))
	require.False(t, MayHaveRun(&RefusedError{Reason: TooLarge, Limit: 1}))
	require.False(t, MayHaveRun(&RefusedError{Reason: MailboxFull}))
}
