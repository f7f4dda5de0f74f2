// Tests of what a Config makes of the membership machine's settings.

package driver

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

// TestMembershipSettingsPass: what is given for the membership machine reaches it, but for the fields that Config has
// itself and those of the driver (CARD-2).
func TestMembershipSettingsPass(t *testing.T) {
	own := strings.Fields("Roles AppVersion MinBirth JoinTimeout Records NoLockProof")
	var given membership.Config
	v := reflect.ValueOf(&given).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(time.Second) + int64(i))
		case reflect.Uint64:
			f.SetUint(uint64(1000 + i))
		case reflect.Float64:
			f.SetFloat(float64(i) / 1000)
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		}
	}
	given.Roles = []string{"given"}
	given.Settings = []membership.Setting{{Key: "given", Value: "too"}}
	given.MinRoleMembers = []membership.RoleMinimum{{Role: "a", Members: 2}}
	given.Detector = fd.Deadline
	made := Config{Membership: given}.WithDefaults().members()
	require.Contains(t, made.Settings, given.Settings[0], "beside the driver's")
	got := reflect.ValueOf(made)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); {
		case slices.Contains(own, name):
			require.True(t, got.Field(i).IsZero(), "%s is Config's own, and not given there", name)
		case name == "Settings" || f.IsZero():
		case f.Kind() == reflect.Func:
			require.Equal(t, f.Pointer(), got.Field(i).Pointer(), name)
		default:
			require.Equal(t, f.Interface(), got.Field(i).Interface(), name)
		}
	}
}
