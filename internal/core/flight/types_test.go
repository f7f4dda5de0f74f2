// Tests of the types that the codec meets.

package flight

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Functions are not in a record: those of a node stay where they are, so each must lie in a value that is read in
// place, or in the configuration. Channels and raw addresses are nowhere.
func TestFunctionsStayInPlace(t *testing.T) {
	places := map[string]bool{}
	explore(func(at reflect.Type) {
		require.NotContains(t, []reflect.Kind{reflect.Chan, reflect.UnsafePointer, reflect.Uintptr}, at.Kind(), at)
		if at.Kind() != reflect.Struct || at == addrType || scratch[at.String()] {
			return
		}
		for i := range at.NumField() {
			if at.Field(i).Type.Kind() == reflect.Func {
				places[at.String()] = true
			}
		}
	})
	for at := range places {
		switch {
		case inPlace[at], strings.HasSuffix(at, ".Config"), at == "node.Node", at == "flight.Asked":
		default:
			t.Errorf("%s has a function and is not read in place", at)
		}
	}
	require.True(t, places["fd.Monitor"] && places["node.Node"], "the walk meets those that there are: %v", places)
	for name := range inPlace {
		require.True(t, anyType(name), "%s is not met any more", name)
	}
	for name := range scratch {
		require.True(t, anyType(name), "%s is not met any more", name)
	}
}

func anyType(name string) (found bool) {
	explore(func(t reflect.Type) { found = found || t.String() == name })
	return found
}

// The mark of the types is the same at every start, and another when a field is.
func TestLayout(t *testing.T) {
	var a, b strings.Builder
	describe(&a)
	describe(&b)
	require.Equal(t, a.String(), b.String())
	require.Contains(t, a.String(), "struct sbr.Machine self:peer.ID cfg:sbr.Config")
}

// Commands that machines give each other are no inputs of a node.
var within = []string{"shard.ViewCommand", "sbr.ViewCommand", "sbr.SeenCommand", "sbr.LateCommand", "sbr.SleptCommand",
	"sbr.UnconfirmedCommand", "sbr.UnheardCommand", "sbr.SeatsCommand", "membership.IsolatedCommand",
	"membership.DrainsCommand", "shard.LapseCommand"}

// Every command of a machine that a runtime may give is kept: one that is forgotten here leaves a gap in each record.
func TestAllCommandsAreKept(t *testing.T) {
	known := map[string]bool{}
	for _, c := range commands {
		known[reflect.TypeOf(c).String()] = true
	}
	method := regexp.MustCompile(`(?m)^func \((?:\w+ )?(\w+)\) command\(\)`)
	for _, name := range []string{"membership", "shard", "sbr"} {
		files, err := filepath.Glob("../../../" + name + "/*.go")
		require.NoError(t, err)
		found := 0
		for _, path := range files {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, m := range method.FindAllStringSubmatch(string(text), -1) {
				found++
				require.True(t, known[name+"."+m[1]] || slices.Contains(within, name+"."+m[1]), "%s.%s", name, m[1])
			}
		}
		require.Positive(t, found, name)
	}
}
