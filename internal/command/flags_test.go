// Tests of every flag of the program: what is no value of it is a wrong command line, and the message names the flag.

package command

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// badValues returns what is no value of a flag: malformed, or beyond all bounds. None: it takes any text.
func badValues(f *kong.Flag) []string {
	whole := []string{"x", "", "1.5", "1e3", "0x", "1 2", "--", "99999999999999999999999"}
	address := strings.Contains(f.Help, "host:port") || strings.HasPrefix(f.Help, "Address")
	kind := f.Target.Kind()
	switch {
	case f.Target.Type() == reflect.TypeFor[time.Duration]():
		return []string{"x", "10", "", "1y", "1s2", "9999999999h", "-2562047h", "2562047h"}
	case kind == reflect.Float64:
		return []string{"x", "", "1,5", "NaN", "Inf", "-Inf", "1e308", "-1e308"}
	case kind == reflect.Uint64, kind == reflect.Uint32:
		whole = append(whole, "-1")
		if kind == reflect.Uint32 {
			whole = append(whole, "4294967296")
		}
		return whole
	case kind == reflect.Int:
		return append(whole, "-9223372036854775808", "9223372036854775807")
	case address && (kind == reflect.String || f.IsSlice()):
		return []string{"nonsense", "a b:1", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:x", ":::", "\x1b[2J:1", "a:1:2"}
	case f.Enum != "", f.Tag.Type == "existingfile":
		return []string{"no-such-thing"}
	}
	return nil
}

// Every flag of every verb, the hidden ones too, refuses what is no value of it: numbers, durations, addresses, words
// of a list, files. Nothing is run, and the message has the flag.
func TestBadValuesOfEveryFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	var model commands
	p, err := parserOf(&model, Name)
	require.NoError(t, err)
	tried, verbs := 0, map[string]bool{}
	for _, leaf := range p.Model.Leaves(false) {
		var c commands
		parser, err := parserOf(&c, Name, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
		require.NoError(t, err)
		verb := strings.Fields(leaf.Path())
		for _, group := range leaf.AllFlags(false) {
			for _, f := range group {
				for _, value := range badValues(f) {
					line := append(append([]string{}, verb...), "--"+f.Name+"="+value)
					line = append(line, arguments(leaf, file)...)
					c = commands{} // it remembers where values of another line came from
					_, err := parser.Parse(line)
					require.Error(t, err, "%q", line)
					require.Contains(t, err.Error(), "--"+f.Name, "%q", line)
					tried++
				}
			}
		}
		verbs[verb[0]] = true
	}
	require.Greater(t, tried, 1000)
	require.Greater(t, len(verbs), 25)
	code, out, errs := program(t, "run", "--margin=2562047h")
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "--margin")
}

// arguments are those that a command wants beside its flags.
func arguments(leaf *kong.Node, file string) (list []string) {
	for _, a := range leaf.Positional {
		switch {
		case a.Enum != "":
			list = append(list, a.EnumSlice()[0])
		case a.Target.Kind() == reflect.Uint32:
			list = append(list, "1")
		case a.Tag.Type == "existingfile":
			list = append(list, file)
		default:
			list = append(list, "127.0.0.1:1")
		}
	}
	return list
}

// A node process that a command starts knows its own command, and not the hundreds of flags of all others, which take a
// tenth of a second of a core to make sense of (CARD-3).
func TestChildrenKnowTheirOwnCommands(t *testing.T) {
	whole, err := parserOf(&commands{}, Name)
	require.NoError(t, err)
	hidden := 0
	for _, leaf := range whole.Model.Leaves(false) {
		if !leaf.Hidden {
			require.False(t, strings.HasSuffix(leaf.Name, "child"), leaf.Name)
			continue
		}
		hidden++
		parser, err := parserFor([]string{leaf.Name}, Name)
		require.NoError(t, err)
		require.Len(t, parser.Model.Leaves(false), reflect.TypeFor[children]().NumField())
		ctx, err := parser.Parse([]string{leaf.Name})
		require.NoError(t, err)
		require.Equal(t, leaf.Target.Type(), ctx.Selected().Target.Type())
	}
	require.Equal(t, reflect.TypeFor[children]().NumField(), hidden)
}
