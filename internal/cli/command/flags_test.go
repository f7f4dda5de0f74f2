// Every flag of the program: what is no value of it is a wrong command line, and the message names the flag.

package command

import (
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// Every flag refuses what is no value of it.
func TestBadValuesOfEveryFlag(t *testing.T) {
	lines, verbs := envtest.Refuses(t, func(more ...kong.Option) (*kong.Kong, error) {
		return parserOf(&commands{}, Name, more...)
	})
	require.Greater(t, lines, 500)
	require.Greater(t, verbs, 15)
	code, out, errs := program(t, "run", "--margin=2562047h")
	require.Equal(t, env.ExitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "--margin")
}

// A node process that a command starts knows its own command, and not the hundreds of flags of all others, which take a
// tenth of a second of a core to make sense of (CARD-3).
func TestChildrenKnowTheirOwnCommands(t *testing.T) {
	whole, err := parserOf(&commands{}, Name)
	require.NoError(t, err)
	alone, err := kong.New(&children{})
	require.NoError(t, err)
	require.Equal(t, reflect.TypeFor[children]().NumField(), envtest.Children(t, whole, alone))
}
