// Tests of parcels: what is written is read, each cut and each bad value is refused, any bytes do no harm.

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParcel(t *testing.T) {
	p := Parcel{Service: 7, First: true, Piece: []byte("piece")}
	f := AppendParcel([]byte("before"), &p)[6:]
	require.Len(t, f, ParcelSize(5))
	require.Equal(t, KindParcel, KindOf(f))
	require.Equal(t, len(f), SizeOf(f))
	got, err := ParseParcel(Body(f))
	require.NoError(t, err)
	require.Equal(t, p, got)
	for n := range parcelHead + 1 {
		_, err := ParseParcel(Body(f)[:n])
		require.Error(t, err, "cut at %d", n)
	}
	bad := Body(f)
	bad[8] = 4
	_, err = ParseParcel(bad)
	require.ErrorIs(t, err, ErrBadValue)
	require.Equal(t, KindParcel.MaxBody(), len(Body(AppendParcel(nil, &Parcel{Piece: make([]byte, MaxParcelPiece)}))))
}

func FuzzParcel(f *testing.F) {
	f.Add(Body(AppendParcel(nil, &Parcel{Service: 7, Last: true, Piece: []byte("piece")})))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseParcel(b); err == nil {
			require.Equal(t, b, Body(AppendParcel(nil, &p)))
		}
	})
}
