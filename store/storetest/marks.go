// The laws of marks.

package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// someTime is when marks of these laws are made.
var someTime = time.UnixMilli(1_800_000_000_123)

// marked returns a write with marks of that number.
func marked(w store.Write, number uint64, from ...string) store.Write {
	for _, who := range from {
		w.Marks = append(w.Marks, store.Mark{From: who, Number: number, At: someTime, Value: fmt.Appendf(nil, "v%d", number)})
	}
	return w
}

// marks demands that an entity has those of the marks, and no others: from=number:value.
func (t *suite) marks(s store.Shard, f route.Fence, id string, from []string, want ...string) {
	t.Helper()
	list, err := t.st.Marks(t.ctx, s, f, id, from...)
	t.is(err, nil)
	got := []string{}
	for _, m := range list {
		got = append(got, fmt.Sprintf("%s=%d:%s", m.From, m.Number, m.Value))
		if !m.At.Equal(someTime) {
			t.Fatalf("%q is of %v, want %v", m.From, m.At, someTime)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Fatalf("%q has %q, want %q", id, got, want)
	}
}

// marksComeWithTheState: marks are written with their record or not at all, under the fence; a repeat is known; a lower
// number changes nothing; a deletion writes them, and leaves those that are there.
func marksComeWithTheState(t *suite) {
	s, f, who := t.shard(1), fence(1), []string{"x\x00anna", "y\xff", "\x00key", "none"}
	t.is(t.st.Commit(t.ctx, s, f, marked(Put("a", 1, "1"), 1, who[0])), store.ErrStoreWentBack)
	t.claims(s, f)
	t.marks(s, f, "a", who)
	first := marked(Put("a", 1, "1"), 5, who[0], who[1])
	t.commits(s, f, first, marked(Put("b", 1, "1"), 3, who[0]))
	want := []string{who[0] + "=5:v5", who[1] + "=5:v5"}
	t.marks(s, f, "a", who, want...)
	t.marks(s, f, "b", who, who[0]+"=3:v3")
	t.is(t.st.Commit(t.ctx, s, f, marked(Put("a", 9, "no"), 7, who[0]), Put("c", 1, "no")), store.ErrVersion)
	t.is(t.st.Commit(t.ctx, s, f, marked(Put("c", 1, "no"), 7, who[0]), Put("a", 9, "no")), store.ErrVersion)
	t.marks(s, f, "c", who)
	t.marks(s, f, "a", who, want...)
	t.commits(s, f, marked(Put("a", 2, "2"), 4, who[0]))
	t.marks(s, f, "a", who, want...)
	next := marked(marked(Put("a", 3, "3"), 6, who[1]), 9, who[2])
	for range 2 {
		t.commits(s, f, next)
	}
	want = []string{who[0] + "=5:v5", who[1] + "=6:v6", who[2] + "=9:v9"}
	t.marks(s, f, "a", who, want...)
	t.is(t.st.Commit(t.ctx, s, f, first), store.ErrVersion)
	del := marked(Put("a", 4, ""), 8, who[0])
	del.Delete = true
	for range 2 {
		t.commits(s, f, del)
	}
	want[0] = who[0] + "=8:v8"
	t.holds(s, f, []string{"a"})
	t.marks(s, f, "a", who, want...)
	gone := marked(Put("never", 1, ""), 2, who[0])
	gone.Delete = true
	t.commits(s, f, gone)
	t.marks(s, f, "never", who, who[0]+"=2:v2")
	t.claims(s, fence(2))
	t.is(t.st.Commit(t.ctx, s, f, marked(Put("b", 2, "no"), 9, who[0])), store.ErrFenced)
	_, err := t.st.Marks(t.ctx, s, f, "b", who...)
	t.is(err, store.ErrFenced)
	t.marks(s, fence(2), "b", who, who[0]+"=3:v3")
	t.marks(s, fence(2), "a", who, want...)
	other := t.shard(2)
	t.claims(other, f)
	t.marks(other, f, "a", who)
}

// marksAreCounted: by the first bytes of From.
func marksAreCounted(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	a := marked(Put("a", 1, ""), 1, "\x00", "\x00a", "\x00b", "\x00bc", "\x01", "b", "\xff\x00")
	t.commits(s, f, a, marked(Put("b", 1, ""), 1, "\x00a"))
	for prefix, want := range map[string]int{"\x00": 4, "\x00b": 2, "b": 1, "\xff": 1, "x": 0} {
		n, err := t.st.CountMarks(t.ctx, s, f, "a", prefix)
		t.is(err, nil)
		if n != want {
			t.Fatalf("%q: %d, want %d", prefix, n, want)
		}
	}
	t.claims(s, fence(2))
	_, err := t.st.CountMarks(t.ctx, s, f, "a", "\x00")
	t.is(err, store.ErrFenced)
}

// marksAreForgotten: those that are older, the oldest first, a bounded number, of one shard, under its fence.
func marksAreForgotten(t *suite) {
	s, f, who := t.shard(1), fence(1), []string{"0", "1", "2", "3", "4"}
	t.claims(s, f)
	other := t.shard(2)
	t.claims(other, f)
	w := Put("a", 1, "")
	for i, from := range who {
		w.Marks = append(w.Marks, store.Mark{From: from, Number: 1, At: someTime.Add(time.Duration(5-i) * time.Millisecond)})
	}
	t.commits(s, f, w)
	t.commits(other, f, w)
	for _, c := range []struct {
		by         time.Duration
		most, want int
		left       string
	}{{1, 9, 0, "01234"}, {3, 1, 1, "0123"}, {3, 9, 1, "012"}, {4, 9, 1, "01"}, {9, 9, 2, ""}, {9, 9, 0, ""}} {
		n, err := t.st.ForgetMarks(t.ctx, s, f, someTime.Add(c.by*time.Millisecond), c.most)
		t.is(err, nil)
		list, err := t.st.Marks(t.ctx, s, f, "a", who...)
		t.is(err, nil)
		left := ""
		for _, m := range list {
			left += m.From
		}
		if n != c.want || left != c.left {
			t.Fatalf("by %v, %d: took %d and left %q, want %d and %q", c.by, c.most, n, left, c.want, c.left)
		}
	}
	list, err := t.st.Marks(t.ctx, other, f, "a", who...)
	t.is(err, nil)
	if len(list) != len(who) {
		t.Fatalf("the other shard has %d", len(list))
	}
	t.claims(other, fence(2))
	_, err = t.st.ForgetMarks(t.ctx, other, f, someTime.Add(time.Hour), 9)
	t.is(err, store.ErrFenced)
}

// marksHaveBounds: what exceeds one is refused with all that is committed beside it.
func marksHaveBounds(t *suite) {
	s, f, from := t.shard(1), fence(1), strings.Repeat("f", store.MaxFrom)
	t.claims(s, f)
	most := Put("a", 1, "")
	for i := range store.MaxMarks {
		most = marked(most, 1<<63-1, from[:store.MaxFrom-i])
	}
	t.commits(s, f, most)
	large := marked(Put("b", 1, ""), 1, from)
	large.Marks[0].Value = make([]byte, store.MaxBytes-large.Size()+len(large.Marks[0].Value))
	t.commits(s, f, large)
	list, err := t.st.Marks(t.ctx, s, f, "b", from)
	t.is(err, nil)
	if len(list) != 1 || len(list[0].Value) != len(large.Marks[0].Value) {
		t.Fatal("a large mark did not come back")
	}
	larger := large
	larger.ID, larger.Marks = "c", slices.Clone(large.Marks)
	larger.Marks[0].Value = append(larger.Marks[0].Value, 0)
	for i, w := range []store.Write{larger, marked(Put("c", 1, ""), 0, "x"), marked(Put("c", 1, ""), 1<<63, "x"),
		marked(Put("c", 1, ""), 1, ""), marked(Put("c", 1, ""), 1, from+"f"), marked(Put("c", 1, ""), 1, "x", "x")} {
		if err := t.st.Commit(t.ctx, s, f, w); err == nil {
			t.Fatalf("write %d is out of bounds and was taken", i)
		} else {
			t.is(err, store.ErrTooLarge)
		}
	}
	for _, most := range []int{0, -1, 10_001} {
		_, err = t.st.ForgetMarks(t.ctx, s, f, someTime, most)
		t.is(err, store.ErrTooLarge)
	}
	_, err = t.st.Marks(t.ctx, s, f, "a", make([]string, store.MaxWrites+1)...)
	t.is(err, store.ErrTooLarge)
	_, err = t.st.CountMarks(t.ctx, s, f, "a", "")
	t.is(err, store.ErrTooLarge)
	_, err = t.st.Marks(t.ctx, s, f, "", "x")
	t.is(err, store.ErrTooLarge)
	t.holds(s, f, []string{"c"})
}

// marksSurvive: as records do.
func marksSurvive(t *suite) {
	if t.e.Again == nil {
		t.Skip("it survives nothing")
	}
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.commits(s, f, marked(Put("a", 1, "1"), 7, "x"))
	t.e.Again(t.T)
	t.st = t.e.Open(t.T)
	t.marks(s, f, "a", []string{"x"}, "x=7:v7")
}
