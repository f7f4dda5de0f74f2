// The statements as they are sent. What they do is tested in the module test/sqlfence, against real databases.

package sqlfence

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// Each dialect has a text for every statement, with as many placeholders as the others, each written as it has them.
func TestStatements(t *testing.T) {
	_, err := New(new(sql.DB), 0)
	require.ErrorIs(t, err, ErrInvalid)
	require.Nil(t, Schema(0))
	like := reflect.ValueOf(*words(SQLite))
	for d := SQLite; d <= MySQL; d++ {
		require.Len(t, Schema(d), 2)
		require.NotContains(t, d.String(), "dialect")
		is := reflect.ValueOf(*words(d))
		for i := range is.NumField() {
			name, text := is.Type().Field(i).Name, is.Field(i).String()
			if name == "dialect" || name == "touch" {
				continue
			}
			n := strings.Count(like.Field(i).String(), "?")
			require.NotZero(t, n, name)
			if d != PostgreSQL {
				require.Equal(t, n, strings.Count(text, "?"), name)
				continue
			}
			require.NotContains(t, text, "?")
			require.Contains(t, text, "$1")
			require.Equal(t, n, strings.Count(text, "$"), name)
		}
	}
	require.Equal(t, "a = $1 and b = $2", numbered("a = ? and b = ?"))
}

// Errors of this package keep their identity between nodes: no two share a code.
func TestErrorsHaveCodes(t *testing.T) {
	codes := map[string]bool{}
	for _, err := range []error{ErrFenced, ErrNotClaimed, ErrConflict, ErrUnknown, ErrSpoiled, ErrInvalid} {
		var named *kith.Error
		require.ErrorAs(t, err, &named)
		require.False(t, codes[named.Code])
		codes[named.Code] = true
	}
}

// A commit with an unknown outcome that failed while its shard was being claimed, waits for the next claim: this one
// may have been done before the commit began.
func TestDoubtsDuringAClaim(t *testing.T) {
	s, err := New(new(sql.DB), SQLite)
	require.NoError(t, err)
	o := Owner{Type: "t", Shard: 1}
	s.raiseDoubt(o)
	for range 2 {
		before := s.doubt(o)
		s.raiseDoubt(o)
		s.settle(o, before)
		require.NotZero(t, s.doubt(o))
	}
	s.settle(o, s.doubt(o))
	require.Zero(t, s.doubt(o))
	require.Empty(t, s.doubts)
}
