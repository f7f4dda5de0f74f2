// Tests of fences as text and in columns of databases.

package route

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
)

var (
	_ sql.Scanner   = (*Fence)(nil)
	_ driver.Valuer = Fence{}
)

func drawFence(t *rapid.T, label string) (f Fence) {
	u := rapid.Uint32()
	return MakeFence(rapid.OneOf(rapid.Uint64(), rapid.Uint64Max(2)).Draw(t, label), u.Draw(t, "term"), u.Draw(t, "epoch"))
}

// TestFenceForms: bytes, digits, the printed form and JSON are all read back as the same fence, and bytes and digits
// sort as fences do.
func TestFenceForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := drawFence(t, "f"), drawFence(t, "g")
		text, err := f.MarshalText()
		require.NoError(t, err)
		column, err := f.Value()
		require.NoError(t, err)
		require.True(t, driver.IsValue(column))
		require.Len(t, column, FenceSize)
		upper := strings.ToUpper(string(text))
		for _, form := range []any{column, text, string(text), upper, []byte(upper)} {
			got := g
			require.NoError(t, got.Scan(form))
			require.Equal(t, f, got)
		}
		for _, form := range []string{string(text), upper, f.String()} {
			got := g
			require.NoError(t, got.UnmarshalText([]byte(form)))
			require.Equal(t, f, got)
			got, err := ParseFence(form)
			require.NoError(t, err)
			require.Equal(t, f, got)
		}
		b, err := json.Marshal(map[Fence]Fence{f: f})
		require.NoError(t, err)
		var back map[Fence]Fence
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, map[Fence]Fence{f: f}, back)

		other, err := g.MarshalText()
		require.NoError(t, err)
		column2, err := g.Value()
		require.NoError(t, err)
		require.Equal(t, f.Compare(g), bytes.Compare(text, other))
		require.Equal(t, f.Compare(g), bytes.Compare(column.([]byte), column2.([]byte)))

		column.([]byte)[0]++
		require.Equal(t, text, must(f.MarshalText()), "the bytes are a copy")
	})
}

func must(b []byte, _ error) []byte { return b }

// TestFenceRefuses: NULL is the zero fence; whatever is no fence is an error that changes nothing.
func TestFenceRefuses(t *testing.T) {
	f := MakeFence(1, 2, 3)
	require.NoError(t, f.Scan(nil))
	require.True(t, f.IsZero())
	f = MakeFence(1, 2, 3)
	digits := string(must(f.MarshalText()))
	require.Equal(t, "00000000000000010000000200000003", digits)
	for _, wrong := range []string{"", "16 bytes as text", digits[1:], digits + "0", "x" + digits[1:], "1.2", "1.2.3.4",
		"1..3", ".2.3", "g.2.3", "10000000000000000.2.3", "1.4294967296.3", "1.2.4294967296", "-1.2.3", "1.+2.3",
		strings.Repeat("1.", 100)} {
		require.Error(t, f.UnmarshalText([]byte(wrong)), "%v", wrong)
		require.Error(t, f.Scan(wrong), "%v", wrong)
		require.Equal(t, MakeFence(1, 2, 3), f)
	}
	for _, wrong := range []any{[]byte{}, []byte("fifteen bytes.."), []byte("seventeen bytes.."), "1.2.3", int64(7),
		1.5, true} {
		require.Error(t, f.Scan(wrong), "%v", wrong)
		require.Equal(t, MakeFence(1, 2, 3), f)
	}
}

// FuzzParseFence: whatever text comes, it is refused or is a form of the fence that it gives.
func FuzzParseFence(f *testing.F) {
	for _, text := range []string{"1.2.3", "ffffffffffffffff.4294967295.0",
		"0123456789abcdef0123456789ABCDEF", "1.2", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(text)) }()
		got, err := ParseFence(text)
		if err != nil {
			require.True(t, got.IsZero())
			return
		}
		again, err := ParseFence(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
