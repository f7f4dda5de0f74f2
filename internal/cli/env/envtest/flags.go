// Flags: every flag of a program is tried with what is no value of it.

package envtest

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

// Refuses tries every flag of every command, the hidden ones too, with what is no value of it: numbers, durations,
// addresses, words of a list, files. Each must be refused with a message that has the flag; nothing is run. parser
// makes the parser anew. Refuses returns how many command lines were tried, of how many commands.
func Refuses(t *testing.T, parser func(...kong.Option) (*kong.Kong, error)) (lines, commands int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	p, err := parser()
	require.NoError(t, err)
	verbs := map[string]bool{}
	for _, leaf := range p.Model.Leaves(false) {
		verb := strings.Fields(leaf.Path())
		for _, group := range leaf.AllFlags(false) {
			for _, f := range group {
				for _, value := range badValues(f) {
					line := append(append([]string{}, verb...), "--"+f.Name+"="+value)
					line = append(line, arguments(leaf, file)...)
					p, err := parser(kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
					require.NoError(t, err)
					_, err = p.Parse(line)
					require.Error(t, err, "%q", line)
					require.Contains(t, err.Error(), "--"+f.Name, "%q", line)
					lines++
				}
			}
		}
		verbs[verb[0]] = true
	}
	return lines, len(verbs)
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
