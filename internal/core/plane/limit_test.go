// Tests of the limit that stands in the text of a refused ask.

package plane

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLimit: whatever text a peer sends, the limit in it is one that AppendLimit could have written, or zero.
func FuzzLimit(f *testing.F) {
	for _, text := range []string{"", "7", "7 bytes", " 7", "-1 bytes", "262144 bytes wait for the entity",
		"9999999999999999999 bytes", "99999999999999999999 bytes"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		limit := ParseLimit(text)
		require.GreaterOrEqual(t, limit, 0)
		require.Equal(t, limit, ParseLimit(append(strconv.AppendInt(nil, int64(limit), 10), " bytes"...)))
	})
}
