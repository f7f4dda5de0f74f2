// Tests of the measure itself: large objects are seen, and the bound can fail.

package spent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var kept []byte

type recorder struct{ failed bool }

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestWithin(t *testing.T) {
	var r recorder
	before := Bytes()
	Within(&r, before, 0)
	require.False(t, r.failed)
	kept = make([]byte, 2*Floor)
	Within(&r, before, Floor+1<<20)
	require.False(t, r.failed)
	Within(&r, before, 0)
	require.True(t, r.failed)
}
