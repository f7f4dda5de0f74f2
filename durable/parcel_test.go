// Tests of parcels as bytes, and of what a receiver makes of copies.

package durable

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/store"
)

// someParcels is an outbox of two, and its bytes.
func someParcels() (list []*parcel, golden string) {
	list = []*parcel{{3<<16 + 1, "account", "ben", 1_800_000_000_123, []byte("{}")}, {3<<16 + 2, "a", "b", 1, nil}}
	return list, "\x01\x01\x02" + "\x81\x80\x0c\x07account\x03ben\x7b\x50\x5c\x18\xa3\x01\x00\x00\x02{}" +
		"\x82\x80\x0c\x01a\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x00"
}

// TestOutboxAsBytes: golden bytes, which are stored; cut short anywhere they are refused (SHD-12).
func TestOutboxAsBytes(t *testing.T) {
	list, golden := someParcels()
	require.Equal(t, golden, string(appendOutbox(nil, true, list)))
	gone, got, err := parseOutbox([]byte(golden))
	require.NoError(t, err)
	require.True(t, gone)
	require.Len(t, got, 2)
	require.Equal(t, *list[0], *got[0])
	require.Equal(t, list[1].number, got[1].number)
	for n := 1; n < len(golden); n++ {
		_, _, err := parseOutbox([]byte(golden[:n]))
		require.Error(t, err, n)
	}
	require.Nil(t, appendOutbox(nil, true, nil))
	gone, got, err = parseOutbox(nil)
	require.NoError(t, err)
	require.False(t, gone)
	require.Empty(t, got)
	for _, bad := range []string{golden + "x", "\x02" + golden[1:], "\x01\x01\xff\xff\xff\xff\x0f", "\x01\x01\x02" +
		strings.Repeat("\x01\x01a\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x00", 2)} {
		_, _, err := parseOutbox([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

// TestNotesAsBytes: golden bytes, which nodes speak; cut short, or with what cannot be, they are refused (SHD-12).
func TestNotesAsBytes(t *testing.T) {
	for golden, n := range map[string]note{
		"\x01\x06a\x00anna\x05\x03\x07\x00\x00\x00\x00\x00\x00\x00": {kindParcel, "a\x00anna", 5, 3, 7},
		"\x02\x06a\x00anna\x05\x00\x07\x00\x00\x00\x00\x00\x00\x00": {kindVoid, "a\x00anna", 5, 0, 7},
		"\x03":        {kind: kindSettle},
		"\x04":        {kind: kindWake},
		"\x05\x03key": {kind: kindKey, from: "key"},
	} {
		b := n.append(nil)
		require.Equal(t, noteMark+golden, string(b))
		got, is, err := parseNote(b)
		require.NoError(t, err)
		require.True(t, is)
		require.Equal(t, n, got)
		for cut := len(noteMark); cut < len(b); cut++ {
			_, is, err := parseNote(b[:cut])
			require.True(t, is)
			require.Error(t, err, cut)
		}
	}
	for _, other := range []string{"", "a tenant", noteMark[:len(noteMark)-1]} {
		_, is, err := parseNote([]byte(other))
		require.NoError(t, err)
		require.False(t, is)
	}
	made := strings.Repeat("\x00", 8)
	for _, bad := range []string{"\x00", "\x06", "\x05\x00", "\x01\x01\x00\x05\x03" + made, "\x01\x00\x05\x03" + made,
		"\x01\x01a\x05\x05" + made, "\x01\x01a\x00\x00" + made, "\x04x",
		"\x01\x01a" + strings.Repeat("\x80", 9) + "\x01\x00" + made} { // 2^63
		_, is, err := parseNote([]byte(noteMark + bad))
		require.True(t, is)
		require.Error(t, err, "%q", bad)
	}
}

// FuzzOutbox: what is read is bounded, and reads the same again.
func FuzzOutbox(f *testing.F) {
	_, golden := someParcels()
	f.Add([]byte(golden))
	f.Fuzz(func(t *testing.T, b []byte) {
		gone, list, err := parseOutbox(b)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(list), MaxOutbox)
		again, same, err := parseOutbox(appendOutbox(nil, gone, list))
		require.NoError(t, err)
		require.Equal(t, list, same)
		require.Equal(t, gone && len(list) > 0, again && len(list) > 0)
	})
}

// FuzzNote: headers are a note, or are not, or are refused; a note reads the same again.
func FuzzNote(f *testing.F) {
	f.Add((&note{kindParcel, "a\x00anna", 5, 3, 7}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, is, err := parseNote(b)
		if err != nil || !is {
			return
		}
		same, is, err := parseNote(n.append(nil))
		require.NoError(t, err)
		require.True(t, is)
		require.Equal(t, n, same)
	})
}

// TestMarksOfWritesThatJoin: all are kept, the last of each sender, as long as there is room.
func TestMarksOfWritesThatJoin(t *testing.T) {
	marks := func(number uint64, from ...string) (list []store.Mark) {
		for _, who := range from {
			list = append(list, store.Mark{From: who, Number: number})
		}
		return list
	}
	w := store.Write{Marks: marks(2, "b")}
	require.True(t, joins(&w, marks(1, "a", "b")))
	require.Equal(t, append(marks(2, "b"), marks(1, "a")...), w.Marks)
	var many []string
	for i := range store.MaxMarks {
		many = append(many, fmt.Sprint(i))
	}
	w = store.Write{Marks: marks(2, "b")}
	require.False(t, joins(&w, marks(1, many...)))
	require.Equal(t, marks(2, "b"), w.Marks)
	w = store.Write{Record: store.Record{State: make([]byte, store.MaxBytes-190)}, Marks: marks(2, "b")}
	require.False(t, joins(&w, marks(1, "a")))
}
