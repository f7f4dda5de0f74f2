// Tests of Tuning: that each field reaches the membership machine, and that what others set there is not offered twice.

package kith

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/membership"
)

// notTuned are the fields of the machine that a Tuning has not: Config's own, what follows from the resolver and the
// directory, and what only simulations set.
var notTuned = strings.Fields(`Roles AppVersion MinBirth JoinTimeout
	MayMiss StopsAfter Records RecordRole
	Intern`)

// tuned returns a Tuning in which no field is zero, and no two of a kind are equal.
func tuned(t *testing.T) Tuning {
	var all Tuning
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case bool:
			f.SetBool(true)
		case int, time.Duration:
			f.SetInt(int64(1000 + i))
		case float64:
			f.SetFloat(float64(i) / 1000)
		case []Setting:
			f.Set(reflect.ValueOf([]Setting{{Key: "a", Value: "b"}}))
		case []RoleMinimum:
			f.Set(reflect.ValueOf([]RoleMinimum{{Role: "a", Members: 2}}))
		case fd.Factory:
			f.Set(reflect.ValueOf(fd.Factory(fd.Deadline)))
		default:
			t.Fatalf("no value for field %s of %s", v.Type().Field(i).Name, f.Type())
		}
	}
	return all
}

// TestTuningReachesTheMachine holds every field of Tuning against the one of the same name in the machine, and every
// field of the machine against Tuning and the list of those that it leaves out (CARD-2).
func TestTuningReachesTheMachine(t *testing.T) {
	own := reflect.ValueOf(tuned(t))
	machine := reflect.ValueOf(Config{Membership: tuned(t)}.driver().Membership)
	for i := range own.NumField() {
		name := own.Type().Field(i).Name
		got := machine.FieldByName(name)
		require.True(t, got.IsValid(), "the machine has no field %s", name)
		if got.Kind() == reflect.Func {
			require.Equal(t, own.Field(i).Pointer(), got.Pointer(), name)
			continue
		}
		require.Equal(t, own.Field(i).Interface(), got.Interface(), name)
	}
	for i := range machine.NumField() {
		name := machine.Type().Field(i).Name
		_, has := own.Type().FieldByName(name)
		require.NotEqual(t, has, slices.Contains(notTuned, name),
			"field %s of the machine is either in Tuning or set by others, not both and not neither", name)
		require.Equal(t, !has, machine.Field(i).IsZero(), "%s", name)
	}
	for _, name := range notTuned {
		_, has := reflect.TypeFor[membership.Config]().FieldByName(name)
		require.True(t, has, "the machine has no field %s any more", name)
	}
}

// TestTuningFaults: a Tuning tells its own faults, all at once, and Config tells them too.
func TestTuningFaults(t *testing.T) {
	require.NoError(t, Tuning{}.Validate())
	bad := Tuning{Threshold: 99, PushFanout: 65, GossipInterval: time.Microsecond}
	for _, name := range []string{"Threshold", "PushFanout", "GossipInterval"} {
		require.ErrorContains(t, bad.Validate(), name)
		require.ErrorContains(t, Config{Membership: bad}.Validate(), name)
	}
}
