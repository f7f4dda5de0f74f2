// Tests of the words of enumerations.

package enum

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type fruit uint16

var fruits = []string{"apple", "", "blood-orange", "plum-12"}

func (f fruit) String() string { return Name(fruits, f, "fruit") }

// TestParse: each value is read back from its name, those without a name of their own included; other words change
// nothing.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		is := fruit(rapid.OneOf(rapid.Uint16Max(8), rapid.Uint16()).Draw(t, "value"))
		got := ^is
		require.NoError(t, Parse(&got, []byte(is.String())))
		require.Equal(t, is, got)
	})
	require.Equal(t, "fruit-1", fruit(1).String())
	require.Equal(t, "plum-12", fruit(3).String())
	for _, word := range []string{"", "Apple", "fruit", "fruit-", "fruit-0", "fruit-01", "fruit-65536", "fruit--1",
		"plum-3"} {
		got := fruit(2)
		require.ErrorContains(t, Parse(&got, []byte(word)), `"`+word+`"`)
		require.Equal(t, fruit(2), got, word)
	}
}
