// Messages: what the entities of the city take, and what may be wrong.

package main

import "github.com/kith-io/kith"

type (
	None   struct{}
	Online struct{ Zone string }        // a driver is free there
	Book   struct{ Trip string }        // a driver or a rider gets a trip, or is through with it
	Ride   struct{ Rider, Zone string } // what a rider wants
	Near   struct{ Zone string }        // a free driver is wanted
	Free   struct{ Driver, Zone string }
	Demand struct{ Drivers, Asked int } // free ones; how many were wanted since the last look
	Rate   struct{ Percent int }        // the price of a zone
)

// Trip is what becomes of a Ride, as it is stored and answered. State is "", "found", "riding" or "done".
type Trip struct {
	Rider, Zone, Driver, State string
	Cents                      int
}

var (
	online  = kith.Message[Online, None]{Type: "driver", Name: "online"}
	take    = kith.Message[Book, None]{Type: "driver", Name: "take"}
	leave   = kith.Message[Book, None]{Type: "driver", Name: "leave"}
	board   = kith.Message[Book, None]{Type: "rider", Name: "board"}
	alight  = kith.Message[Book, None]{Type: "rider", Name: "alight"}
	request = kith.Message[Ride, Trip]{Type: "trip", Name: "request"}
	finish  = kith.Message[None, Trip]{Type: "trip", Name: "finish"}
	nearest = kith.Message[Near, Free]{Type: "matcher", Name: "nearest"}
	free    = kith.Message[Free, None]{Type: "matcher", Name: "free"}
	demand  = kith.Message[Near, Demand]{Type: "matcher", Name: "demand"}
	rate    = kith.Message[None, Rate]{Type: "zone", Name: "rate"}
	setRate = kith.Message[Rate, None]{Type: "zone", Name: "set"}
)

// These reach the asker, on whatever node they happen.
var (
	errBusy     = kith.NewError("driver-busy", kith.KindConflict, "the driver has another trip")
	errOnTrip   = kith.NewError("rider-on-trip", kith.KindConflict, "the rider has another trip")
	errNoDriver = kith.NewError("no-driver", kith.KindUnavailable, "no driver is free in this zone")
	errNoTrip   = kith.NewError("no-trip", kith.KindNotFound, "there is no such trip")
	errNoZone   = kith.NewError("no-zone", kith.KindInvalid, "there is no such zone")
)
