// City: drivers, riders and trips, with their state in SQL; the matcher; zones and their prices.

package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sqlfence"
)

var zones = []string{"north", "south", "east", "west"}

// stored is an entity with its state, an S, in the database: what was answered is stored.
type stored[S any] struct{ *sqlfence.State[S] }

func (*stored[S]) Stop(*kith.Context) {}

// load makes one: it claims its shard, then reads.
func load[S any](s *sqlfence.Store) func(c *kith.Context) (*stored[S], error) {
	return func(c *kith.Context) (*stored[S], error) {
		state, err := sqlfence.Load(c, s, kith.JSON[S]())
		return &stored[S]{state}, err
	}
}

type (
	atWork struct{ Zone, Trip string }
	driver = stored[atWork]
	rider  = stored[Book] // the trip that it is on
	trip   = stored[Trip]
)

// saveDriver stores a driver, and where the next matcher finds it, in one transaction.
func saveDriver(d *driver, c *kith.Context) error {
	return d.Save(c, func(tx *sql.Tx) error {
		_, err := tx.Exec("replace into drivers values (?, ?, ?)", c.ID, d.Value.Zone, d.Value.Trip)
		return err
	})
}

func driverOnline(d *driver, c *kith.Context, m *Online) (None, error) {
	if !slices.Contains(zones, m.Zone) {
		return None{}, errNoZone
	}
	if d.Value.Trip != "" {
		return None{}, errBusy
	}
	d.Value.Zone = m.Zone
	if err := saveDriver(d, c); err != nil {
		return None{}, err
	}
	return free.Ask(c, free.Type, &Free{c.ID, m.Zone})
}

func driverTake(d *driver, c *kith.Context, m *Book) (None, error) {
	if d.Value.Trip == m.Trip {
		return None{}, nil // the asker has not heard the first answer
	}
	if d.Value.Trip != "" {
		return None{}, errBusy
	}
	d.Value.Trip = m.Trip
	return None{}, saveDriver(d, c)
}

func driverLeave(d *driver, c *kith.Context, m *Book) (None, error) {
	if d.Value.Trip != "" && d.Value.Trip != m.Trip {
		return None{}, nil // it is on its next trip
	}
	d.Value.Trip = ""
	if err := saveDriver(d, c); err != nil {
		return None{}, err
	}
	return free.Ask(c, free.Type, &Free{c.ID, d.Value.Zone})
}

func riderBoard(r *rider, c *kith.Context, m *Book) (None, error) {
	if r.Value == *m {
		return None{}, nil
	}
	if r.Value.Trip != "" {
		return None{}, errOnTrip
	}
	r.Value = *m
	return None{}, r.Save(c)
}

func riderAlight(r *rider, c *kith.Context, m *Book) (None, error) {
	if r.Value != *m {
		return None{}, nil // it has
	}
	r.Value = Book{}
	return None{}, r.Save(c)
}

// tripRequest may be repeated: it goes on where it stood.
func tripRequest(t *trip, c *kith.Context, m *Ride) (Trip, error) {
	for t.Value.State == "" || t.Value.State == "found" {
		if t.Value.State == "" {
			if err := find(t, c, m); err != nil {
				return Trip{}, err
			}
		}
		if _, err := take.Ask(c, t.Value.Driver, &Book{c.ID}); err == nil {
			t.Value.State = "riding"
		} else if errors.Is(err, errBusy) {
			t.Value.State = "" // another trip was faster
		} else {
			return Trip{}, err
		}
		if err := t.Save(c); err != nil {
			return Trip{}, err
		}
	}
	return t.Value, nil
}

// find makes the rider board and finds a driver.
func find(t *trip, c *kith.Context, m *Ride) error {
	if _, err := board.Ask(c, m.Rider, &Book{c.ID}); err != nil {
		return err
	}
	price, err := rate.Ask(c, m.Zone, &None{})
	if err != nil {
		return err
	}
	near, err := nearest.Ask(c, nearest.Type, &Near{m.Zone})
	if errors.Is(err, errNoDriver) {
		_, off := alight.Ask(c, m.Rider, &Book{c.ID})
		return errors.Join(err, off)
	} else if err != nil {
		return err
	}
	t.Value = Trip{m.Rider, m.Zone, near.Driver, "found", 10 * price.Percent}
	return t.Save(c) // before the driver knows, so that no driver waits for a trip that has forgotten it
}

// tripFinish may be repeated, too.
func tripFinish(t *trip, c *kith.Context, _ *None) (Trip, error) {
	if t.Value.State == "done" {
		return t.Value, nil
	}
	if t.Value.State != "riding" {
		return Trip{}, errNoTrip
	}
	_, err := alight.Ask(c, t.Value.Rider, &Book{c.ID})
	_, err2 := leave.Ask(c, t.Value.Driver, &Book{c.ID})
	if err := errors.Join(err, err2); err != nil {
		return Trip{}, err
	}
	t.Value.State = "done"
	return t.Value, t.Save(c)
}

// matcher knows the free drivers. It stores nothing: the next one reads which are free.
type matcher struct {
	free  map[string][]string // by zone
	asked map[string]int
}

func (m city) newMatcher(c *kith.Context) (*matcher, error) {
	x := &matcher{map[string][]string{}, map[string]int{}}
	rows, err := m.db.QueryContext(c.Context(), "select id, zone from drivers where trip = '' order by id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, zone string
		if err := rows.Scan(&id, &zone); err != nil {
			return nil, err
		}
		x.free[zone] = append(x.free[zone], id)
	}
	return x, rows.Err()
}

func (x *matcher) nearest(_ *kith.Context, m *Near) (Free, error) {
	x.asked[m.Zone]++
	all := x.free[m.Zone]
	if len(all) == 0 {
		return Free{}, errNoDriver
	}
	x.free[m.Zone] = all[1:]
	return Free{all[0], m.Zone}, nil
}

func (x *matcher) back(_ *kith.Context, m *Free) (None, error) {
	for zone, all := range x.free {
		x.free[zone] = slices.DeleteFunc(all, func(id string) bool { return id == m.Driver })
	}
	x.free[m.Zone] = append(x.free[m.Zone], m.Driver)
	return None{}, nil
}

func (x *matcher) demand(_ *kith.Context, m *Near) (Demand, error) {
	d := Demand{len(x.free[m.Zone]), x.asked[m.Zone]}
	x.asked[m.Zone] = 0
	return d, nil
}

func (*matcher) Stop(*kith.Context) {}

// zone has a price, which moves with it.
type zone struct{ Rate }

func newZone(*kith.Context) (*zone, error)                 { return &zone{Rate{100}}, nil }
func (z *zone) rate(*kith.Context, *None) (Rate, error)    { return z.Rate, nil }
func (z *zone) set(_ *kith.Context, m *Rate) (None, error) { z.Rate = *m; return None{}, nil }
func (z *zone) handOver(*kith.Context) (*Rate, error)      { return &z.Rate, nil }
func (z *zone) takeUp(_ *kith.Context, m *Rate) error      { z.Rate = *m; return nil }
func (*zone) Stop(*kith.Context)                           {}

// surge is one look of the daemon of a zone: the more want a driver, the dearer. It is called again after a rest.
func surge(_ context.Context, c *kith.Context, index int) error {
	d, err := demand.Ask(c, demand.Type, &Near{zones[index]})
	if err != nil {
		return err
	}
	return setRate.Tell(c, zones[index], &Rate{min(100+100*d.Asked/(d.Drivers+1), 300)})
}

// types, match and prices are what the cluster runs, on nodes and in the simulator.
func (m city) types() []kith.EntityType {
	const shards, idle = 64, 10 * time.Minute // few shards: each that moves is claimed anew, one write after the other
	return []kith.EntityType{
		{Name: "driver", Shards: shards, IdleAfter: idle, Typed: kith.Methods(load[atWork](m.store),
			kith.On(online, driverOnline), kith.On(take, driverTake), kith.On(leave, driverLeave))},
		{Name: "rider", Shards: shards, IdleAfter: idle, Typed: kith.Methods(load[Book](m.store),
			kith.On(board, riderBoard), kith.On(alight, riderAlight))},
		{Name: "trip", Shards: shards, IdleAfter: idle, Typed: kith.Methods(load[Trip](m.store),
			kith.On(request, tripRequest), kith.On(finish, tripFinish))},
		{Name: "zone", Shards: 8, Typed: kith.Methods(newZone, kith.On(rate, (*zone).rate),
			kith.On(setRate, (*zone).set), kith.HandOver(nil, (*zone).handOver, (*zone).takeUp))},
	}
}

func (m city) match() kith.Singleton {
	return kith.Singleton{Name: "matcher", Typed: kith.Methods(m.newMatcher, kith.On(nearest, (*matcher).nearest),
		kith.On(free, (*matcher).back), kith.On(demand, (*matcher).demand))}
}

func prices() kith.Daemons {
	return kith.Daemons{Name: "surge", N: len(zones), Run: surge, MinBackoff: 5 * time.Second}
}
