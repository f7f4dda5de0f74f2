// Tests of the settings that other rooms take: each field reaches its machine, and what others set there is not offered
// twice.

package kith

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
)

// notTuned are the fields of the machine that a MembershipConfig has not: Config's own, what follows from the resolver
// and the directory, and what only simulations set.
var notTuned = strings.Fields(`Roles AppVersion MinBirth JoinTimeout
	MayMiss StopsAfter Records RecordRole
	Intern NoLockProof Electorate`)

// fill sets a field to a value that is not zero and that no other of its kind has, where its kind is plain.
func fill(name string, i int, field reflect.Value) {
	switch field.Interface().(type) {
	case bool:
		field.SetBool(true)
	case string:
		field.SetString(name)
	case int, time.Duration:
		field.SetInt(int64(1000 + i))
	case uint64:
		field.SetUint(uint64(1000 + i))
	case float64:
		field.SetFloat(float64(i) / 1000)
	case Strategy:
		field.Set(reflect.ValueOf(LeaseMajority))
	case []string:
		field.Set(reflect.ValueOf([]string{name}))
	case []Setting:
		field.Set(reflect.ValueOf([]Setting{{Key: "a", Value: "b"}}))
	case []RoleMinimum:
		field.Set(reflect.ValueOf([]RoleMinimum{{Role: "a", Members: 2}}))
	case fd.Factory:
		field.Set(reflect.ValueOf(fd.Factory(fd.Deadline)))
	}
}

// filled returns a T in which no field is zero, and no two of a kind are equal.
func filled[T any](t *testing.T) T {
	var all T
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		fill(v.Type().Field(i).Name, i, v.Field(i))
		require.False(t, v.Field(i).IsZero(), "no value for field %s", v.Type().Field(i).Name)
	}
	return all
}

// reaches holds every field of own, of which none is zero, against the one of the same name in machine, and every field
// of machine against own and the list of those that own leaves out.
func reaches(t *testing.T, own, machine any, others []string) {
	t.Helper()
	from, to := reflect.ValueOf(own), reflect.ValueOf(machine)
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		got := to.FieldByName(name)
		require.True(t, got.IsValid(), "the machine has no field %s", name)
		if got.Kind() == reflect.Func {
			require.Equal(t, from.Field(i).Pointer(), got.Pointer(), name)
			continue
		}
		require.Equal(t, from.Field(i).Interface(), got.Interface(), name)
	}
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		_, has := from.Type().FieldByName(name)
		require.NotEqual(t, has, slices.Contains(others, name),
			"field %s of the machine is either public or set by others, not both and not neither", name)
		require.Equal(t, !has, to.Field(i).IsZero(), name)
	}
	for _, name := range others {
		require.True(t, to.FieldByName(name).IsValid(), "the machine has no field %s any more", name)
	}
}

// TestTuningReachesTheMachine: no field of MembershipConfig is forgotten, and none of the machine's is public twice
// (CARD-2).
func TestTuningReachesTheMachine(t *testing.T) {
	all := filled[MembershipConfig](t)
	reaches(t, all, Config{Membership: all}.driver().Membership, notTuned)
}

// TestResolverReachesTheMachine: the same of the resolver's settings; what silence is borne follows from the detector,
// and how much of its patience counts from Config.Patience (MEM-10).
func TestResolverReachesTheMachine(t *testing.T) {
	all := filled[Resolver](t)
	reaches(t, all, Config{Resolver: all}.driver().Resolver, []string{"Silence", "WatchedBy", "StablePercent"})
}

// TestTLSReachesTheTransport: the files and the switch, and what Load returns (CARD-2).
func TestTLSReachesTheTransport(t *testing.T) {
	given := TLS{CertFile: "a", KeyFile: "b", CAFile: "c", CRLFile: "d", VerifyHost: true}
	got := Config{TLS: given}.driver().TLS
	require.Nil(t, got.Load)
	require.Equal(t, given, TLS{CertFile: got.CertFile, KeyFile: got.KeyFile, CAFile: got.CAFile, CRLFile: got.CRLFile,
		VerifyHost: got.VerifyHost})
	require.Equal(t, reflect.TypeOf(given).NumField(), reflect.TypeOf(got).NumField())
	made := Credentials{CAs: x509.NewCertPool(), CRLs: []*x509.RevocationList{{}}}
	given = TLS{Load: func() (Credentials, error) { return made, io.ErrUnexpectedEOF }}
	loaded, err := Config{TLS: given}.driver().TLS.Load()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, made, Credentials(loaded))
}

// TestTuningFaults: a MembershipConfig reports its own faults, all at once, and Config reports them too.
func TestTuningFaults(t *testing.T) {
	require.NoError(t, MembershipConfig{}.Validate())
	bad := MembershipConfig{Threshold: 99, PushFanout: 65, GossipInterval: time.Microsecond}
	for _, name := range []string{"Threshold", "PushFanout", "GossipInterval"} {
		require.ErrorContains(t, bad.Validate(), name)
		require.ErrorContains(t, Config{Membership: bad}.Validate(), name)
	}
}

// TestConfigReachesTheDriver: every field but those of types of their own, which the tests above hold (CARD-2).
func TestConfigReachesTheDriver(t *testing.T) {
	all := Config{Logger: slog.New(slog.DiscardHandler), Phases: []Phase{{Name: "a"}}, Lease: noLease{},
		Patience: PatienceNoisy,
		Sharding: Sharding{TakeoverTime: 1, ProcessDeathIsProof: true, NoLockProof: true,
			Session: Session{Service: noLease{}, Ends: noLease{}},
			Tenure:  Tenure{Voters: 3, Grant: 4, Role: "r"}, ParkBytes: 2, ParkTime: 3,
			RebalanceInterval: 4, MaxMoves: 5, MarkTime: 6, DrainTime: 7, MaxHandOver: 8},
		FlightRecord: FlightRecord{Bytes: 9, Directory: "there"},
		Undelivered:  func(Undelivered) {}, Incident: func(Incident) {}, Latency: func(Measure, string, time.Duration) {}}
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		fill(v.Type().Field(i).Name, i, v.Field(i))
	}
	made := reflect.ValueOf(all.driver())
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		got := made.FieldByName(name)
		require.True(t, got.IsValid(), name)
		switch f := v.Field(i); f.Interface().(type) {
		case TLS, MembershipConfig, Resolver:
		case Sharding:
			for j := range f.NumField() {
				require.False(t, f.Field(j).IsZero(), "no value for field %s", f.Type().Field(j).Name)
				to := got.FieldByName(f.Type().Field(j).Name)
				if s, ok := f.Field(j).Interface().(Session); ok {
					require.Equal(t, s.Service, to.FieldByName("Service").Interface())
					require.Equal(t, s.Ends, to.FieldByName("Ends").Interface())
					continue
				}
				require.Equal(t, f.Field(j).Interface(), to.Convert(f.Field(j).Type()).Interface(), f.Type().Field(j).Name)
			}
		case FlightRecord:
			require.Equal(t, f.Interface(), got.Convert(f.Type()).Interface(), name)
		default:
			require.False(t, f.IsZero(), "no value for field %s", name)
			if f.Kind() == reflect.Func {
				require.Equal(t, f.Pointer(), got.Pointer(), name)
			} else {
				require.Equal(t, f.Interface(), got.Interface(), name)
			}
		}
	}
}

// noLease is a lease that nobody gets.
type noLease struct{}

func (noLease) Acquire(context.Context, string, string) (bool, error) { return false, nil }
func (noLease) Release(context.Context, string, string) error         { return nil }
func (noLease) TTL() time.Duration                                    { return time.Minute }
