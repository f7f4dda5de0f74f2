// Package discoverytest holds what every discovery.Discovery must keep, as a test to run against one of your own.
package discoverytest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kith-io/kith/discovery"
)

// patience is how long a look-up may take that should answer at once.
const patience = 10 * time.Second

// Case is a Discovery and how to change what it finds.
type Case struct {
	// New returns a Discovery that finds exactly these targets, which are sorted and each there once. It is called several
	// times.
	New func(t *testing.T, targets []discovery.Target) discovery.Discovery
	// Fail returns a Discovery with a source that cannot be asked; nil: there is no such thing, as for a list.
	Fail func(t *testing.T) discovery.Discovery
	// Empty says that the source can say that there is nobody.
	Empty bool
	// Ports says that targets have ports of their own; else those of the suite have none.
	Ports bool
	// Names says that the source names hosts, as service records do, and no addresses.
	Names bool
}

func (c Case) targets(hosts ...string) []discovery.Target {
	var list []discovery.Target
	for i, host := range hosts {
		t := discovery.Target{Host: host}
		if c.Names {
			t.Host = "n" + strings.ReplaceAll(host, ".", "-") + ".test"
		}
		if c.Ports {
			t.Port = uint16(7000 + i)
		}
		list = append(list, t)
	}
	slices.SortFunc(list, discovery.Target.Compare)
	return list
}

func lookUp(t *testing.T, d discovery.Discovery) ([]discovery.Target, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return d.Lookup(ctx)
}

func same(t *testing.T, want, got []discovery.Target, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("Lookup: %v", err)
	case !slices.Equal(want, got):
		t.Errorf("Lookup returned %v, want %v: sorted by Target.Compare, each once", got, want)
	}
}

// Run holds c to the contract of discovery.Discovery.
func Run(t *testing.T, c Case) {
	t.Run("finds all, sorted", func(t *testing.T) {
		want := c.targets("10.0.0.9", "10.0.0.10", "10.0.0.1")
		got, err := lookUp(t, c.New(t, want))
		same(t, want, got, err)
	})
	if !c.Names {
		t.Run("finds IPv6", func(t *testing.T) {
			want := c.targets("2001:db8::1", "2001:db8::2")
			got, err := lookUp(t, c.New(t, want))
			same(t, want, got, err)
		})
	}
	t.Run("the answer is the caller's", func(t *testing.T) {
		want := c.targets("10.0.0.1", "10.0.0.2")
		d := c.New(t, want)
		got, err := lookUp(t, d)
		same(t, want, got, err)
		clear(got)
		got, err = lookUp(t, d)
		same(t, want, got, err)
	})
	t.Run("at the same time", c.together)
	t.Run("a context that has ended", func(t *testing.T) {
		d := c.New(t, c.targets("10.0.0.1"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if list, err := d.Lookup(ctx); err == nil {
			t.Errorf("Lookup returned %v and no error", list)
		}
	})
	if c.Empty {
		t.Run("nobody", func(t *testing.T) {
			got, err := lookUp(t, c.New(t, nil))
			same(t, []discovery.Target{}, append([]discovery.Target{}, got...), err)
		})
	}
	if c.Fail != nil {
		t.Run("a source that cannot be asked", func(t *testing.T) {
			if list, err := lookUp(t, c.Fail(t)); err == nil || len(list) > 0 {
				t.Errorf("Lookup returned %v and the error %v: nothing is known, and that is an error", list, err)
			}
		})
	}
}

// together has several goroutines look up at one time.
func (c Case) together(t *testing.T) {
	want := c.targets("10.0.0.1", "10.0.0.2")
	d := c.New(t, want)
	type answer struct {
		list []discovery.Target
		err  error
	}
	answers := make(chan answer)
	for range 8 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			list, err := d.Lookup(ctx)
			answers <- answer{list, err}
		}()
	}
	for range 8 {
		a := <-answers
		same(t, want, a.list, a.err)
	}
}
