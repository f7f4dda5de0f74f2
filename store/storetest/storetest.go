// The suite: what every engine must do, run against the engine itself.

// Package storetest tells whether a store of durable entities keeps the contract of package store. An engine's tests
// call Run; the engine is the real one, not a double of it.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Engine is what is tested.
type Engine struct {
	// Open returns a store of the data that all stores of one Engine share, as another process would open it. The test
	// closes nothing: use t.Cleanup.
	Open func(t *testing.T) store.Store
	// Hold, if not nil, begins a commit of its own that has done all but what makes it last, and returns a function that
	// ends it and says whether it lasts, as Commit does. Engines with commits of one step have none.
	Hold func(t *testing.T, s store.Shard, f route.Fence, w ...store.Write) (end func() error)
	// Again, if not nil, ends the engine as a crash does and has it begin again, what was committed and nothing else;
	// stores that were opened before may fail then.
	Again func(t *testing.T)
}

// patience bounds each test. It is far beyond what any takes.
const patience = 2 * time.Minute

// suite is one run.
type suite struct {
	*testing.T
	e   Engine
	st  store.Store
	ctx context.Context
}

// Run runs the suite. Each law is a subtest, on shards of its own.
func Run(t *testing.T, e Engine) {
	for name, law := range map[string]func(*suite){
		"FenceOnlyGrows": fenceOnlyGrows, "LastOwnerIsTold": lastOwnerIsTold, "NobodyClaimed": nobodyClaimed,
		"VersionsFollow": versionsFollow, "AllOrNone": allOrNone, "RepeatsAreKnown": repeatsAreKnown,
		"Deletes": deletes, "Floor": floor, "LateCopies": lateCopies, "CopiesBesideTheOwner": copiesBesideTheOwner,
		"WhatIsDue": whatIsDue, "DueInPages": dueInPages, "WhatIsUnsent": whatIsUnsent,
		"Bounds": bounds, "LargeRecords": largeRecords,
		"ShardsAreApart": shardsAreApart, "CommitBesideAClaim": commitBesideAClaim, "HeldCommit": heldCommit,
		"CallsThatEnd": callsThatEnd, "ManyShards": manyShards, "Survives": survives,
		"MarksComeWithTheState": marksComeWithTheState, "MarksAreCounted": marksAreCounted,
		"MarksAreForgotten": marksAreForgotten, "MarksHaveBounds": marksHaveBounds, "MarksSurvive": marksSurvive,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			law(&suite{t, e, e.Open(t), ctx})
		})
	}
}

// shard is the n-th of the running test's own.
func (t *suite) shard(n int) store.Shard { return store.Shard{Type: t.Name(), N: route.ShardID(n)} }

// fence is the n-th fence.
func fence(n int) route.Fence { return route.MakeFence(1<<63+7, 3, uint32(n)) }

// Put returns a write of a record's version, with a new nonce.
func Put(id string, version uint64, state string) store.Write {
	w := store.Write{Record: store.Record{ID: id, Version: version, State: []byte(state)}}
	for w.Nonce == [16]byte{} {
		for i := range w.Nonce {
			w.Nonce[i] = byte(rand.Uint32())
		}
	}
	return w
}

func (t *suite) claims(s store.Shard, f route.Fence) store.Claimed {
	t.Helper()
	c, err := t.st.Claim(t.ctx, s, f)
	t.is(err, nil)
	return c
}

func (t *suite) commits(s store.Shard, f route.Fence, w ...store.Write) {
	t.Helper()
	t.is(t.st.Commit(t.ctx, s, f, w...), nil)
}

// is demands an error, or none.
func (t *suite) is(err, want error) {
	t.Helper()
	if !errors.Is(err, want) || err != nil && want == nil {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// holds demands that of the ids those records are there, and no others: id=version:state.
func (t *suite) holds(s store.Shard, f route.Fence, ids []string, want ...string) {
	t.Helper()
	list, err := t.st.Load(t.ctx, s, f, ids...)
	t.is(err, nil)
	got := []string{}
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s=%d:%s", r.ID, r.Version, r.State))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%v holds %v, want %v", s, got, want)
	}
}

// fenceOnlyGrows: a fenced owner reads and writes nothing, and a lower claim is refused.
func fenceOnlyGrows(t *suite) {
	s := t.shard(1)
	t.claims(s, fence(2))
	t.commits(s, fence(2), Put("a", 1, "x"))
	_, err := t.st.Claim(t.ctx, s, fence(1))
	t.is(err, store.ErrFenced)
	t.claims(s, fence(300))
	t.is(t.st.Commit(t.ctx, s, fence(2), Put("a", 2, "late")), store.ErrFenced)
	t.is(t.st.Commit(t.ctx, s, fence(2), Put("b", 1, "late")), store.ErrFenced)
	_, err = t.st.Load(t.ctx, s, fence(2), "a")
	t.is(err, store.ErrFenced)
	t.claims(s, fence(300))
	t.holds(s, fence(300), []string{"a", "b"}, "a=1:x")
	for i, higher := range []route.Fence{route.MakeFence(1<<63+7, 4, 1), route.MakeFence(1<<63+8, 1, 1)} {
		t.claims(s, higher)
		t.commits(s, higher, Put("a", uint64(i)+2, "x"))
	}
}

// lastOwnerIsTold: a claim names the owner before, also when it is repeated.
func lastOwnerIsTold(t *suite) {
	s := t.shard(1)
	for i, want := range []route.Fence{{}, {}, fence(1), fence(1), fence(4)} {
		f := []route.Fence{fence(1), fence(1), fence(4), fence(4), fence(5)}[i]
		if last := t.claims(s, f).Last; last != want {
			t.Fatalf("claim %d says %v, want %v", i, last, want)
		}
		if i == 2 {
			t.commits(s, f, Put("a", 1, "x")) // which changes nothing of it
		}
	}
}

// nobodyClaimed: an owner that writes or reads under a fence that the store does not know has lost its claim.
func nobodyClaimed(t *suite) {
	s := t.shard(1)
	t.is(t.st.Commit(t.ctx, s, fence(1), Put("a", 1, "x")), store.ErrStoreWentBack)
	_, err := t.st.Load(t.ctx, s, fence(1), "a")
	t.is(err, store.ErrStoreWentBack)
	t.claims(s, fence(1))
	t.is(t.st.Commit(t.ctx, s, fence(2), Put("a", 1, "x")), store.ErrStoreWentBack)
	_, err = t.st.Load(t.ctx, s, fence(2), "a")
	t.is(err, store.ErrStoreWentBack)
	t.holds(s, fence(1), []string{"a"})
}

// versionsFollow: each write follows the version before it, and nothing else.
func versionsFollow(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.is(t.st.Commit(t.ctx, s, f, Put("a", 2, "no")), store.ErrVersion)
	t.commits(s, f, Put("a", 1, "1"))
	for _, v := range []uint64{1, 3, 9} {
		t.is(t.st.Commit(t.ctx, s, f, Put("a", v, "no")), store.ErrVersion)
	}
	w := Put("a", 2, "2")
	w.Schema, w.Outbox, w.Due = 7, []byte{0, 1, 255}, time.UnixMilli(1_800_000_000_123)
	w.Reminders = []byte{9, 0, 255}
	t.commits(s, f, w)
	list, err := t.st.Load(t.ctx, s, f, "a", "b")
	t.is(err, nil)
	if len(list) != 1 || list[0].ID != "a" || list[0].Version != 2 || list[0].Schema != 7 ||
		string(list[0].State) != "2" || !slices.Equal(list[0].Outbox, w.Outbox) || !list[0].Due.Equal(w.Due) ||
		!slices.Equal(list[0].Reminders, w.Reminders) || list[0].Nonce != w.Nonce {
		t.Fatalf("got %+v, want %+v", list, w)
	}
	t.commits(s, f, Put("a", 3, ""))
	list, err = t.st.Load(t.ctx, s, f, "a")
	t.is(err, nil)
	if len(list) != 1 || len(list[0].State)+len(list[0].Outbox)+len(list[0].Reminders) != 0 || !list[0].Due.IsZero() {
		t.Fatalf("got %+v", list)
	}
}

// allOrNone: one write that may not take place takes the others with it, wherever it stands.
func allOrNone(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.commits(s, f, Put("a", 1, "1"), Put("b", 1, "1"))
	for _, bad := range []store.Write{Put("b", 1, "no"), Put("b", 3, "no"), Put("z", 2, "no"), gone("b", 3)} {
		for at := range 3 {
			w := slices.Insert([]store.Write{Put("a", 2, "no"), Put("c", 1, "no")}, at, bad)
			t.is(t.st.Commit(t.ctx, s, f, w...), store.ErrVersion)
		}
	}
	t.holds(s, f, []string{"a", "b", "c", "z"}, "a=1:1", "b=1:1")
}

// repeatsAreKnown: a commit with a lost answer is called again, and is a success if it was one, also beside a new
// record, a changed and a deleted one; with another nonce it is another write.
func repeatsAreKnown(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.commits(s, f, Put("a", 1, "1"), Put("c", 1, "1"))
	w := []store.Write{Put("a", 2, "2"), Put("b", 1, "1"), gone("c", 2)}
	for range 3 {
		t.commits(s, f, w...)
	}
	t.holds(s, f, []string{"a", "b", "c"}, "a=2:2", "b=1:1")
	t.is(t.st.Commit(t.ctx, s, f, Put("a", 2, "2")), store.ErrVersion)
	t.is(t.st.Commit(t.ctx, s, f, Put("b", 1, "1")), store.ErrVersion)
	t.claims(s, fence(2))
	t.is(t.st.Commit(t.ctx, s, f, w...), store.ErrFenced)
}

// deletes: what is taken away is gone, again and again, and may be made anew.
func deletes(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.commits(s, f, Put("a", 1, "1"))
	del := gone("a", 2)
	t.commits(s, f, del)
	t.commits(s, f, del)
	t.holds(s, f, []string{"a"})
	t.commits(s, f, anew("a", 3, "anew"))
	t.holds(s, f, []string{"a"}, "a=3:anew")
	t.commits(s, f, gone("a", 4), gone("never", 1)) // which none was made of
	t.holds(s, f, []string{"a", "never"})
}

// gone returns a write that deletes, anew one that makes a record.
func gone(id string, version uint64) store.Write {
	w := Put(id, version, "")
	w.Delete = true
	return w
}

func anew(id string, version uint64, state string) store.Write {
	w := Put(id, version, state)
	w.New = true
	return w
}

// floor: the floor of a shard is the highest version of its deletions, survives owners, and concerns no other shard.
// Records are made above it, each commit by the floor before itself.
func floor(t *suite) {
	s, other, f := t.shard(1), t.shard(2), fence(1)
	is := func(want uint64) {
		t.Helper()
		if got := t.claims(s, f).Floor; got != want {
			t.Fatalf("the floor is %d, want %d", got, want)
		}
	}
	t.claims(other, f)
	is(0)
	t.commits(s, f, anew("a", 7, "1"), anew("b", 3, "1"), Put("c", 1, "1"), Put("d", 1, "1"))
	is(0)
	t.commits(s, f, gone("c", 2))
	is(2)
	t.is(t.st.Commit(t.ctx, s, f, gone("b", 4), gone("a", 9), Put("x", 5, "no")), store.ErrVersion)
	is(2)
	both := []store.Write{gone("b", 4), anew("e", 3, "1"), gone("a", 8), gone("d", 2)}
	for range 2 {
		t.commits(s, f, both...)
		is(8)
	}
	for v := uint64(1); v <= 8; v++ {
		t.is(t.st.Commit(t.ctx, s, f, anew("n", v, "no")), store.ErrVersion)
	}
	high := gone("e", 4)
	high.Floor = 100
	t.commits(s, f, high)
	is(100)
	f = fence(2)
	t.is(t.st.Commit(t.ctx, s, fence(2), anew("n", 100, "no")), store.ErrStoreWentBack)
	is(100)
	t.is(t.st.Commit(t.ctx, s, f, both...), store.ErrVersion)
	t.is(t.st.Commit(t.ctx, s, f, Put("n", 102, "no")), store.ErrVersion)
	t.commits(s, f, anew("n", 101, "1"))
	t.commits(other, fence(1), Put("n", 1, "1"))
	t.holds(s, f, []string{"a", "b", "c", "d", "e", "n"}, "n=101:1")
}

// lateCopies: copies of earlier commits that come when their record was deleted, and when it was made anew, change
// nothing: of what made it, of what changed it, of what deleted it, and of several at once.
func lateCopies(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	t.commits(s, f, Put("z", 1, "1"))
	made, changed, del := Put("a", 1, "1"), Put("a", 2, "2"), gone("a", 3)
	mixed := []store.Write{Put("z", 2, "2"), Put("a", 1, "1")}
	mixed[1] = made
	t.commits(s, f, mixed...)
	t.commits(s, f, changed)
	t.commits(s, f, del)
	late := func() {
		t.Helper()
		for _, w := range [][]store.Write{{made}, {changed}, mixed} {
			t.is(t.st.Commit(t.ctx, s, f, w...), store.ErrVersion)
		}
	}
	late()
	t.commits(s, f, del)
	t.holds(s, f, []string{"a", "z"}, "z=2:2")
	again := anew("a", 4, "4")
	t.commits(s, f, again)
	t.commits(s, f, again)
	late()
	t.is(t.st.Commit(t.ctx, s, f, del), store.ErrVersion)
	t.is(t.st.Commit(t.ctx, s, f, anew("a", 4, "no")), store.ErrVersion)
	t.is(t.st.Commit(t.ctx, s, f, anew("a", 5, "no")), store.ErrVersion)
	t.holds(s, f, []string{"a", "z"}, "a=4:4", "z=2:2")
	t.commits(s, f, gone("a", 5))
	late()
	t.is(t.st.Commit(t.ctx, s, f, again), store.ErrVersion)
	t.holds(s, f, []string{"a", "z"}, "z=2:2")
}

// copiesBesideTheOwner: an owner makes, changes and deletes a record, again and again, while copies of all that it has
// sent arrive at any time, by other connections. None stands in its way, and what was acknowledged is there.
func copiesBesideTheOwner(t *suite) {
	const rounds = 15
	s, f, others := t.shard(1), fence(1), t.e.Open(t.T)
	t.claims(s, f)
	var all sync.WaitGroup
	defer all.Wait()
	low := uint64(0)
	for range rounds {
		for i, w := range []store.Write{anew("a", low+1, "1"), Put("a", low+2, "2"), gone("a", low+3)} {
			rest := time.Duration(rand.IntN(5)) * time.Millisecond // as long as it is under way
			all.Go(func() {
				time.Sleep(rest)
				_ = others.Commit(t.ctx, s, f, w) // whatever the answer
			})
			err := t.st.Commit(t.ctx, s, f, w)
			for errors.Is(err, store.ErrUnknown) && t.ctx.Err() == nil {
				err = t.st.Commit(t.ctx, s, f, w)
			}
			t.is(err, nil)
			if got, want := t.version(s, f, "a"), []uint64{low + 1, low + 2, 0}[i]; got != want {
				t.Fatalf("version %d is there, want %d", got, want)
			}
		}
		low += 3
		if got := t.claims(s, f).Floor; got != low {
			t.Fatalf("the floor is %d, want %d", got, low)
		}
	}
}

// due returns what Due yields.
func (t *suite) due(s store.Shard, by time.Time) (list []store.Alarm) {
	t.Helper()
	for a, err := range t.st.Due(t.ctx, s, by) {
		t.is(err, nil)
		list = append(list, a)
	}
	return list
}

// whatIsDue: records of one shard that are due, earliest first, until they change; an outbox makes none due.
func whatIsDue(t *suite) {
	s, f, at := t.shard(1), fence(1), time.UnixMilli(1_800_000_000_000)
	t.claims(s, f)
	put := func(id string, version uint64, after time.Duration) store.Write {
		w := Put(id, version, "x")
		w.Due, w.Outbox = at.Add(after), []byte("x")
		return w
	}
	never := Put("never", 1, "")
	never.Outbox, never.Reminders = []byte("x"), []byte("x")
	t.commits(s, f, put("z", 1, 0), put("b", 1, 5*time.Millisecond), put("a", 1, 5*time.Millisecond), never,
		put("c", 1, -100*365*24*time.Hour)) // long before 1970 is a time, too
	other := t.shard(2)
	t.claims(other, f)
	t.commits(other, f, put("z", 1, 0))
	want := func(by time.Duration, ids ...string) {
		t.Helper()
		var got []string
		for _, a := range t.due(s, at.Add(by)) {
			got = append(got, a.ID)
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("by %v: %v, want %v", by, got, ids)
		}
	}
	want(-time.Millisecond, "c")
	want(0, "c", "z")
	want(4*time.Millisecond, "c", "z")
	want(time.Hour, "c", "z", "a", "b")
	if list := t.due(s, at); !list[1].At.Equal(at) {
		t.Fatalf("due at %v, want %v", list[1].At, at)
	}
	t.commits(s, f, put("z", 2, time.Minute), Put("b", 2, ""), gone("c", 2))
	want(time.Hour, "a", "z")
	for range t.st.Due(t.ctx, s, at.Add(time.Hour)) {
		break // the reader may stop
	}
}

// dueInPages: many records that are due come in order, each once, while the reader calls the store.
func dueInPages(t *suite) {
	const records = 700
	s, f, at := t.shard(1), fence(1), time.UnixMilli(1_800_000_000_000)
	t.claims(s, f)
	var want []store.Alarm
	for n := 0; n < records; n += store.MaxWrites {
		var w []store.Write
		for i := range store.MaxWrites {
			p := Put(fmt.Sprint("id", n+i), 1, "")
			p.Due = at.Add(time.Duration(rand.IntN(50)) * time.Millisecond)
			w, want = append(w, p), append(want, store.Alarm{ID: p.ID, At: p.Due})
		}
		t.commits(s, f, w...)
	}
	slices.SortFunc(want, func(a, b store.Alarm) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	n := 0
	for a, err := range t.st.Due(t.ctx, s, at.Add(time.Second)) {
		t.is(err, nil)
		if n >= len(want) || a.ID != want[n].ID || !a.At.Equal(want[n].At) {
			t.Fatalf("the record at place %d is %v", n, a)
		}
		if n%100 == 0 {
			t.version(s, f, a.ID)
		}
		n++
	}
	if n != records {
		t.Fatalf("%d of %d records came", n, records)
	}
}

// whatIsUnsent: the records with an outbox, of one shard, by id, in as many pages as it takes, until they change.
func whatIsUnsent(t *suite) {
	const records = 600
	s, f := t.shard(1), fence(1)
	other := t.shard(2)
	t.claims(s, f)
	t.claims(other, f)
	put := func(id string, version uint64, outbox string) store.Write {
		w := Put(id, version, "")
		w.Outbox, w.Due = []byte(outbox), time.UnixMilli(1)
		return w
	}
	t.commits(other, f, put("other", 1, "x"))
	var want []string
	for n := 0; n < records; n += 50 {
		var w []store.Write
		for i := n; i < n+50; i++ {
			id := fmt.Sprint("id", i)
			w, want = append(w, put(id, 1, "x"), put(fmt.Sprint("none", i), 1, "")), append(want, id)
		}
		t.commits(s, f, w...)
	}
	unsent := func() (ids []string) {
		for id, err := range t.st.Unsent(t.ctx, s) {
			t.is(err, nil)
			if ids = append(ids, id); len(ids)%100 == 0 {
				t.version(s, f, id)
			}
		}
		return ids
	}
	slices.Sort(want)
	if got := unsent(); !slices.Equal(got, want) {
		t.Fatalf("%d, want %d: %v", len(got), len(want), got)
	}
	t.commits(s, f, put(want[0], 2, ""), gone(want[1], 2), put(want[2], 2, "y"))
	if got := unsent(); !slices.Equal(got, want[2:]) {
		t.Fatalf("%d, want %d: %v", len(got), len(want)-2, got)
	}
	for range t.st.Unsent(t.ctx, s) {
		break // the reader may stop
	}
}

// bounds: what exceeds one is refused as a whole, what just reaches it is not.
func bounds(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	id := strings.Repeat("i", route.MaxIDSize)
	most := Put(id, 1, strings.Repeat("s", store.MaxBytes-store.Overhead-len(id)))
	t.commits(s, f, most)
	var many []store.Write
	for i := range store.MaxWrites + 1 {
		many = append(many, Put(fmt.Sprint("m", i), 1, "x"))
	}
	t.commits(s, f, many[:store.MaxWrites]...)
	large, none, zero := most, Put("n", 0, ""), Put("n", 1, "")
	large.Reminders = []byte("x")
	zero.Nonce = [16]byte{}
	schema, low := Put("n", 1, ""), gone("n", 1)
	schema.Schema, low.Floor = 1<<31, 1<<62+1
	for _, w := range [][]store.Write{nil, {large}, {none}, {zero}, {schema}, {low}, many, {Put("", 1, "")},
		{Put(id+"i", 1, "")}, {Put("n", 1, ""), Put("n", 2, "")}} {
		t.is(t.st.Commit(t.ctx, s, f, w...), store.ErrTooLarge)
	}
	for _, bad := range []store.Shard{{}, {Type: strings.Repeat("t", 256)}, {Type: "\x00"}, {Type: "\xff"},
		{Type: "t", N: route.MaxShards}} {
		_, err := t.st.Claim(t.ctx, bad, f)
		t.is(err, store.ErrTooLarge)
		t.is(t.st.Commit(t.ctx, bad, f, Put("n", 1, "")), store.ErrTooLarge)
	}
	_, err := t.st.Claim(t.ctx, s, route.Fence{})
	t.is(err, store.ErrTooLarge)
	_, err = t.st.Load(t.ctx, s, f, make([]string, store.MaxWrites+1)...)
	t.is(err, store.ErrTooLarge)
	t.holds(s, f, []string{"n"})
}

// largeRecords: bytes of every value come back, of ids too.
func largeRecords(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	state := make([]byte, 700<<10)
	for i := range state {
		state[i] = byte(rand.Uint32())
	}
	ids := []string{"ä/'\"\\%_", "\x00\xff\xfe", " a ", "A", "a"} // ids need not be text
	var w []store.Write
	for i, id := range ids {
		p := Put(id, 1, "")
		p.State = state[:1+i*30<<10]
		w = append(w, p)
	}
	t.commits(s, f, w...)
	for i, id := range ids {
		list, err := t.st.Load(t.ctx, s, f, id)
		t.is(err, nil)
		if len(list) != 1 || list[0].ID != id || !slices.Equal(list[0].State, w[i].State) {
			t.Fatalf("%q did not come back", id)
		}
	}
	p := Put("large", 1, "")
	p.State = state
	t.commits(s, f, p)
	list, err := t.st.Load(t.ctx, s, f, "large")
	t.is(err, nil)
	if len(list) != 1 || !slices.Equal(list[0].State, state) {
		t.Fatal("a large record did not come back")
	}
}

// shardsAreApart: shards of one type, and types, know nothing of one another.
func shardsAreApart(t *suite) {
	s, n, o := t.shard(1), t.shard(2), store.Shard{Type: t.Name() + "x", N: 1}
	for i, at := range []store.Shard{s, n, o} {
		t.claims(at, fence(9-i))
		t.commits(at, fence(9-i), Put("a", 1, fmt.Sprint(i)))
	}
	for i, at := range []store.Shard{s, n, o} {
		t.holds(at, fence(9-i), []string{"a"}, fmt.Sprintf("a=1:%d", i))
	}
}

// commitBesideAClaim: owners follow one another while those before them go on writing, from stores of their own. When a
// claim has returned, nothing of an earlier owner takes place any more, and what was acknowledged is there.
func commitBesideAClaim(t *suite) {
	const owners, ids = 12, 3
	s := t.shard(1)
	said := make([][ids]uint64, owners+1) // acknowledged versions, by owner
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.ctx)
	defer all.Wait() // also when the law is broken
	defer cancel()
	t.claims(s, fence(1))
	for n := 1; n <= owners; n++ {
		st, f := t.e.Open(t.T), fence(n)
		all.Go(func() { writeUntilFenced(ctx, t, st, s, f, &said[n]) })
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // more of its commits or fewer, both are of interest
		t.claims(s, fence(n+1))
		var before [ids]uint64
		for i := range ids {
			before[i] = t.version(s, fence(n+1), fmt.Sprint(i))
		}
		time.Sleep(time.Millisecond)
		for i := range ids {
			if now := t.version(s, fence(n+1), fmt.Sprint(i)); now != before[i] {
				t.Fatalf("version %d became %d after the claim", before[i], now)
			}
		}
	}
	all.Wait()
	for i := range ids {
		now := t.version(s, fence(owners+1), fmt.Sprint(i))
		for n := range said {
			if said[n][i] > now {
				t.Fatalf("version %d was told as written, and %d is there", said[n][i], now)
			}
		}
	}
}

// version returns that of a record, 0 for none.
func (t *suite) version(s store.Shard, f route.Fence, id string) uint64 {
	t.Helper()
	list, err := t.st.Load(t.ctx, s, f, id)
	t.is(err, nil)
	if len(list) == 0 {
		return 0
	}
	return list[0].Version
}

// writeUntilFenced writes all records of a shard, from what is there on, until another one has claimed it. Two writers
// of one fence are at work, each repeats what it does not know.
func writeUntilFenced(ctx context.Context, t *suite, st store.Store, s store.Shard, f route.Fence,
	said *[3]uint64) {
	for {
		list, err := st.Load(ctx, s, f, "0", "1", "2")
		if errors.Is(err, store.ErrFenced) {
			return
		}
		if err != nil {
			if ctx.Err() != nil {
				t.Errorf("the owner is never fenced: %v", err)
				return
			}
			continue
		}
		at := map[string]uint64{}
		for _, r := range list {
			at[r.ID] = r.Version
		}
		w := []store.Write{Put("0", at["0"]+1, "x"), Put("1", at["1"]+1, "x"), Put("2", at["2"]+1, "x")}
		for known := false; !known; {
			switch err := st.Commit(ctx, s, f, w...); {
			case err == nil:
				*said, known = [3]uint64{w[0].Version, w[1].Version, w[2].Version}, true
			case errors.Is(err, store.ErrFenced):
				return
			case errors.Is(err, store.ErrVersion), errors.Is(err, store.ErrStoreWentBack), ctx.Err() != nil:
				t.Errorf("a single owner was told: %v", err)
				return
			}
		}
	}
}

// heldCommit: a commit is held open while another node claims the shard. Either the claim waits for it, and finds what
// it wrote, or the commit fails.
func heldCommit(t *suite) {
	if t.e.Hold == nil {
		t.Skip("its commits cannot be held open")
	}
	for i, answer := range []func(error){func(error) {}, nil} {
		s := t.shard(i)
		t.claims(s, fence(1))
		t.commits(s, fence(1), Put("a", 1, "1"))
		end := t.e.Hold(t.T, s, fence(1), Put("a", 2, "2"))
		claimed := make(chan error, 1)
		go func() {
			_, err := t.st.Claim(t.ctx, s, fence(2))
			claimed <- err
		}()
		if answer == nil { // the claim is on its way for longer
			time.Sleep(50 * time.Millisecond)
		}
		early := false
		select {
		case err := <-claimed:
			t.is(err, nil)
			early = true
			claimed <- nil
		default:
		}
		ended := end()
		t.is(<-claimed, nil)
		switch {
		case early && ended == nil:
			t.Fatal("the claim had returned, and the commit took place")
		case ended == nil:
			t.holds(s, fence(2), []string{"a"}, "a=2:2")
		default:
			t.holds(s, fence(2), []string{"a"}, "a=1:1")
		}
		t.is(t.st.Commit(t.ctx, s, fence(1), Put("a", 3, "3")), store.ErrFenced)
	}
}

// callsThatEnd: a call with a context that has ended, before or while, says so and nothing definite, and the same call
// again is known.
func callsThatEnd(t *suite) {
	s, f := t.shard(1), fence(1)
	t.claims(s, f)
	over, cancel := context.WithCancel(t.ctx)
	cancel()
	w := Put("a", 1, "1")
	err := t.st.Commit(over, s, f, w)
	if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrVersion) {
		t.Fatalf("got %v", err)
	}
	for v := uint64(1); v <= 20; v++ {
		w := Put("b", v, "x")
		short, cancel := context.WithTimeout(t.ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
		err := t.st.Commit(short, s, f, w)
		cancel()
		for err != nil && !errors.Is(err, store.ErrVersion) && !errors.Is(err, store.ErrFenced) && t.ctx.Err() == nil {
			err = t.st.Commit(t.ctx, s, f, w)
		}
		t.is(err, nil)
	}
	t.commits(s, f, w)
	t.holds(s, f, []string{"a", "b"}, "a=1:1", "b=20:x")
}

// manyShards: shards are written at once, by two stores, and each sees its own.
func manyShards(t *suite) {
	const shards, times = 16, 10
	var all sync.WaitGroup
	stores := []store.Store{t.st, t.e.Open(t.T)}
	for n := range shards {
		all.Go(func() {
			st, s, f := stores[n%2], t.shard(n), fence(n+1)
			if _, err := st.Claim(t.ctx, s, f); err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			for v := uint64(1); v <= times; v++ {
				w := []store.Write{Put("a", v, fmt.Sprint(n)), Put("b", v, fmt.Sprint(n))}
				err := st.Commit(t.ctx, s, f, w...)
				for errors.Is(err, store.ErrUnknown) && t.ctx.Err() == nil {
					err = st.Commit(t.ctx, s, f, w...)
				}
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	for n := range shards {
		t.holds(t.shard(n), fence(n+1), []string{"a", "b"}, fmt.Sprintf("a=%d:%d", times, n),
			fmt.Sprintf("b=%d:%d", times, n))
	}
}

// survives: what was acknowledged is there when the engine has crashed and begun again, the fence too.
func survives(t *suite) {
	if t.e.Again == nil {
		t.Skip("it survives nothing")
	}
	s := t.shard(1)
	t.claims(s, fence(1))
	t.claims(s, fence(2))
	t.commits(s, fence(2), Put("a", 1, "1"))
	t.commits(s, fence(2), Put("a", 2, "2"), Put("b", 1, "1"), Put("c", 1, "1"))
	t.commits(s, fence(2), gone("c", 2))
	t.e.Again(t.T)
	t.st = t.e.Open(t.T)
	t.is(t.st.Commit(t.ctx, s, fence(1), Put("a", 3, "no")), store.ErrFenced)
	t.holds(s, fence(2), []string{"a", "b"}, "a=2:2", "b=1:1")
	if c := t.claims(s, fence(2)); c != (store.Claimed{Last: fence(1), Floor: 2}) {
		t.Fatalf("the claim says %+v", c)
	}
}
