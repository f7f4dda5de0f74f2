// The configuration of a machine.

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	err := Config{RetryInterval: -1, MaxTypes: -1, TakeoverTime: -1}.Validate()
	require.ErrorContains(t, err, "RetryInterval")
	require.ErrorContains(t, err, "MaxTypes")
	require.ErrorContains(t, err, "TakeoverTime")
	require.Error(t, Config{RetryInterval: 5, RetryMax: 4}.Validate())
	require.Equal(t, DefaultTakeoverTime, Config{}.withDefaults().TakeoverTime)
}
