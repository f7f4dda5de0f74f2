// Tests of the city: in the simulator, and on three nodes that share a database.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// inMemory is a city with a database that ends with the test.
func inMemory(t *testing.T) city {
	m, err := open(t.Context(), filepath.Join(t.TempDir(), "dispatch.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.db.Close() })
	return m
}

// simulated is the same city on simulated nodes.
func simulated(t *testing.T, nodes int) *sim.Cluster {
	m, c := inMemory(t), sim.New(t, nodes, 7)
	for _, typ := range m.types() {
		c.Register(typ)
	}
	c.Keep(m.match())
	c.Keep(prices())
	c.AwaitUp()
	return c
}

// A rider gets the only driver, the next one gets none, and when the trip is over there is one again. What is repeated
// changes nothing.
func TestTrips(t *testing.T) {
	c := simulated(t, 3)
	for range 2 {
		_, err := online.Ask(c.Node(0), "dora", &Online{"north"})
		require.NoError(t, err)
	}
	_, err := online.Ask(c.Node(0), "dora", &Online{"sea"})
	require.ErrorIs(t, err, errNoZone)
	var first Trip
	for range 2 {
		first, err = request.Ask(c.Node(1), "t1", &Ride{"rosa", "north"})
		require.NoError(t, err)
		require.Equal(t, Trip{"rosa", "north", "dora", "riding", first.Cents}, first)
	}
	_, err = request.Ask(c.Node(2), "t2", &Ride{"rosa", "north"})
	require.ErrorIs(t, err, errOnTrip)
	_, err = request.Ask(c.Node(2), "t3", &Ride{"rolf", "north"})
	require.ErrorIs(t, err, errNoDriver, "through two hops")
	var named *kith.Error
	require.ErrorAs(t, err, &named)
	require.Equal(t, kith.KindUnavailable, named.Kind)
	_, err = online.Ask(c.Node(0), "dora", &Online{"south"})
	require.ErrorIs(t, err, errBusy)
	_, err = finish.Ask(c.Node(0), "t9", &None{})
	require.ErrorIs(t, err, errNoTrip)
	for range 2 {
		done, err := finish.Ask(c.Node(0), "t1", &None{})
		require.NoError(t, err)
		require.Equal(t, "done", done.State)
	}
	got, err := request.Ask(c.Node(2), "t3", &Ride{"rolf", "north"})
	require.NoError(t, err)
	require.Equal(t, "dora", got.Driver)
}

// Prices rise where nobody is free, and fall again.
func TestPrices(t *testing.T) {
	c := simulated(t, 3)
	price := func() int {
		r, err := rate.Ask(c.Node(0), "west", &None{})
		require.NoError(t, err)
		return r.Percent
	}
	for i := range 3 {
		_, err := request.Ask(c.Node(0), fmt.Sprint(i), &Ride{fmt.Sprint("r", i), "west"})
		require.ErrorIs(t, err, errNoDriver)
	}
	require.True(t, c.Until(time.Minute, func() bool { return price() > 100 }))
	require.True(t, c.Until(time.Minute, func() bool { return price() == 100 }))
}

// The node of the matcher is lost: the next matcher finds the drivers in the database, and what was begun goes on.
func TestMatcherIsLost(t *testing.T) {
	c := simulated(t, 5)
	for i := range 6 {
		_, err := online.Ask(c.Node(0), fmt.Sprint("d", i), &Online{"east"})
		require.NoError(t, err)
	}
	lost := c.Owner("matcher", "matcher")
	c.PowerOff(lost)
	on := (lost + 1) % 5
	drivers := map[string]bool{}
	for i := range 6 {
		require.True(t, c.Until(2*time.Minute, func() bool {
			got, err := request.Ask(c.Node(on), fmt.Sprint("t", i), &Ride{fmt.Sprint("r", i), "east"})
			drivers[got.Driver] = err == nil
			delete(drivers, "")
			return err == nil
		}))
	}
	require.Len(t, drivers, 6, "each driver has one trip")
}

// three starts nodes that share a database, and returns what puts a request to one of them.
func three(t *testing.T) (nodes []*kith.Node, put func(on int, path string) int) {
	m := inMemory(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	for range 3 {
		cfg := kith.Config{Name: "dispatch"}
		if len(nodes) > 0 {
			cfg.Seeds = []string{nodes[0].Addr().String()}
		}
		n, err := kith.Start(ctx, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		require.NoError(t, m.declare(n))
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		require.NoError(t, n.Ready(ctx))
	}
	return nodes, func(on int, path string) int {
		w := httptest.NewRecorder()
		front(nodes[on]).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPut, path, nil))
		return w.Code
	}
}

// A ride is one trace, from the request through the trip to the rider, the zone, the matcher and the driver, wherever
// they live.
func TestRideIsOneTrace(t *testing.T) {
	out := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(out)))
	_, put := three(t)
	require.Equal(t, 200, put(0, "/drivers/dora?zone=north"))
	out.Reset()
	require.Equal(t, 200, put(1, "/trips/t1?zone=north&rider=rosa"))
	under := map[string]string{} // the name of a span, and that of its parent
	names, spans := map[any]string{}, out.GetSpans()
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	request := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "PUT /trips/{id}" })
	for _, s := range spans {
		if s.SpanContext.TraceID() == spans[request].SpanContext.TraceID() {
			under[s.Name] = names[s.Parent.SpanID()]
		}
	}
	require.Equal(t, map[string]string{"PUT /trips/{id}": "", "ask trip": "PUT /trips/{id}", "receive trip": "ask trip",
		"receive rider": "receive trip", "receive zone": "receive trip", "receive matcher": "receive trip",
		"receive driver": "receive trip"}, under)
}

// Three nodes share a database and serve HTTP; one leaves.
func TestOverHTTP(t *testing.T) {
	nodes, put := three(t)
	require.Equal(t, 400, put(0, "/drivers/dora?zone=sea"))
	for i := range 4 {
		require.Equal(t, 200, put(i%3, fmt.Sprintf("/drivers/d%d?zone=north", i)))
		require.Equal(t, 200, put((i+1)%3, fmt.Sprintf("/trips/t%d?zone=north&rider=r%d", i, i)))
	}
	require.Equal(t, 503, put(0, "/trips/t9?zone=north&rider=r9"))
	require.Equal(t, 409, put(0, "/drivers/d1?zone=north"))
	require.Equal(t, 404, put(0, "/trips/none/finish"))
	err := nodes[2].Leave(t.Context())
	var lost *kith.LostStatesError
	require.True(t, err == nil || errors.As(err, &lost), "%v", err)
	for i := range 4 {
		require.Equal(t, 200, put(i%2, fmt.Sprintf("/trips/t%d/finish", i)))
		require.Equal(t, 200, put(i%2, fmt.Sprintf("/trips/u%d?zone=north&rider=r%d", i, i)))
	}
}

// The program has at most 350 lines beside blank ones and comments, as docs/dispatch.md says.
func TestProgramIsShort(t *testing.T) {
	lines := 0
	for _, file := range []string{"main.go", "messages.go", "city.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	require.LessOrEqual(t, lines, 350)
}
