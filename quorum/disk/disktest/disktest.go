// Package disktest holds an engine to what package disk asks of it.
package disktest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kith-io/kith/quorum/disk"
)

// Run tries the engines that open returns. Each call opens the same disk again, of which the one before was closed;
// fresh says that it is to be another, empty one.
func Run(t *testing.T, open func(t *testing.T, fresh bool) disk.Engine) {
	t.Run("order", func(t *testing.T) { order(t, open(t, true)) })
	t.Run("model", func(t *testing.T) { model(t, open) })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// list returns what Each calls with.
func list(t *testing.T, e disk.Engine, prefix, after string, most int) (keys []string) {
	t.Helper()
	check(t, e.Each([]byte(prefix), []byte(after), func(k, v []byte) bool {
		keys = append(keys, string(k)+"="+string(v))
		return len(keys) < most
	}))
	return keys
}

func order(t *testing.T, e disk.Engine) {
	defer func() { check(t, e.Close()) }()
	if v, err := e.Get([]byte("a")); v != nil || err != nil {
		t.Fatalf("an empty disk has %q, %v", v, err)
	}
	check(t, e.Commit([]disk.Change{{Key: []byte("b\xff"), Value: []byte("3")}, {Key: []byte("a"), Value: []byte("1")},
		{Key: []byte("b"), Value: []byte("2")}, {Key: []byte("c"), Value: []byte{}},
		{Key: []byte("\xff"), Value: []byte("4")}}))
	check(t, e.Commit([]disk.Change{{Key: []byte("a"), Value: nil}, {Key: []byte("b"), Value: []byte("5")}}))
	for _, c := range []struct {
		prefix, after string
		most          int
		want          []string
	}{
		{"", "", 9, []string{"b=5", "b\xff=3", "c=", "\xff=4"}}, {"b", "", 9, []string{"b=5", "b\xff=3"}},
		{"b", "b", 9, []string{"b\xff=3"}}, {"", "b", 1, []string{"b\xff=3"}}, {"\xff", "", 9, []string{"\xff=4"}},
		{"x", "", 9, nil},
	} {
		if got := list(t, e, c.prefix, c.after, c.most); !slices.Equal(got, c.want) {
			t.Fatalf("prefix %q after %q: %q, not %q", c.prefix, c.after, got, c.want)
		}
	}
	if v, err := e.Get([]byte("c")); err != nil || v == nil || len(v) != 0 {
		t.Fatalf("an empty value is one: %v, %v", v, err)
	}
}

// model holds an engine that is closed and opened again against a map.
func model(t *testing.T, open func(t *testing.T, fresh bool) disk.Engine) {
	rng := rand.New(rand.NewPCG(1, 36))
	kept, e := map[string]string{}, open(t, true)
	for round := range 60 {
		var batch []disk.Change
		for range 1 + rng.IntN(8) {
			k := fmt.Sprint("k", rng.IntN(50))
			if rng.IntN(3) == 0 {
				batch = append(batch, disk.Change{Key: []byte(k)})
				delete(kept, k)
				continue
			}
			v := bytes.Repeat([]byte{byte(round)}, rng.IntN(4000))
			batch = append(batch, disk.Change{Key: []byte(k), Value: v})
			kept[k] = string(v)
		}
		check(t, e.Commit(batch))
		if rng.IntN(10) == 0 {
			check(t, e.Close())
			e = open(t, false)
		}
		n := 0
		check(t, e.Each([]byte("k"), nil, func(k, v []byte) bool {
			if want, is := kept[string(k)]; !is || want != string(v) {
				t.Fatalf("round %d: %s differs", round, k)
			}
			n++
			return true
		}))
		if n != len(kept) || e.Bytes() < 0 {
			t.Fatalf("round %d: %d keys, not %d", round, n, len(kept))
		}
	}
	check(t, e.Close())
}
