// Tests of targets, lists, files and several methods together (BOOT-1).

package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/discovery/discoverytest"
)

func texts(list []discovery.Target) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.String())
	}
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// Targets have one form each; what is no host is refused (BOOT-1, SEC-5).
func TestParseTarget(t *testing.T) {
	for text, want := range map[string]discovery.Target{
		"10.0.0.1": {Host: "10.0.0.1"}, "10.0.0.1:7627": {Host: "10.0.0.1", Port: 7627}, "a.B.c.": {Host: "a.b.c"},
		"N1:80": {Host: "n1", Port: 80}, "::1": {Host: "::1"}, "[::1]": {Host: "::1"}, "[2001:DB8::1]:9": {
			Host: "2001:db8::1", Port: 9}, "::ffff:10.0.0.1": {Host: "10.0.0.1"}, "n1:0": {Host: "n1"},
		"n_1": {Host: "n_1"},
	} {
		got, err := discovery.ParseTarget(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := discovery.ParseTarget(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, text := range []string{"", ":80", "a:b", "a:65536", "a:-1", "a b", "a/b", "ä", "a\x1b[2J", "[::1", "::1]:80",
		"fe80::1%eth0", "a:1:2", strings.Repeat("a", 254), "http://a", "a?b", "a#b", "a@b"} {
		_, err := discovery.ParseTarget(text)
		require.ErrorIs(t, err, discovery.ErrBadTarget, "%q", text)
		require.Less(t, len(err.Error()), 400)
		require.NotContains(t, err.Error(), "\x1b")
	}
}

// Too many are an error, not a part of them (BOOT-7).
func TestNormalize(t *testing.T) {
	got, err := discovery.Normalize([]discovery.Target{{Host: "b"}, {Host: "A", Port: 2}, {Host: "a", Port: 1},
		{Host: "B"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "a:2", "b"}, texts(got))
	many := make([]discovery.Target, discovery.MaxTargets+1)
	for i := range many {
		many[i].Host = fmt.Sprint("n", i)
	}
	_, err = discovery.Normalize(many)
	require.ErrorIs(t, err, discovery.ErrTooManyTargets)
	_, err = discovery.Normalize(many[1:])
	require.NoError(t, err)
	_, err = discovery.Normalize([]discovery.Target{{Host: "a b"}})
	require.ErrorIs(t, err, discovery.ErrBadTarget)
}

// A list keeps the contract (BOOT-1).
func TestStatic(t *testing.T) {
	discoverytest.Run(t, discoverytest.Case{Empty: true, Ports: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			d, err := discovery.Static(texts(targets)...)
			require.NoError(t, err)
			return d
		}})
	_, err := discovery.Static("a", "b c", "d:e")
	require.ErrorIs(t, err, discovery.ErrBadConfig)
	require.ErrorIs(t, err, discovery.ErrBadTarget)
	require.Contains(t, err.Error(), "b c")
	require.Contains(t, err.Error(), "d:e", "all faults at once")
}

// A file keeps the contract (BOOT-1).
func TestFile(t *testing.T) {
	discoverytest.Run(t, discoverytest.Case{Empty: true, Ports: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			name := filepath.Join(t.TempDir(), "targets")
			write(t, name, "# of this cluster\n\n"+strings.Join(append(texts(targets), ""), "\n"))
			d, err := discovery.File(name)
			require.NoError(t, err)
			return d
		},
		Fail: func(t *testing.T) discovery.Discovery {
			d, err := discovery.File(filepath.Join(t.TempDir(), "none"))
			require.NoError(t, err)
			return d
		}})
	_, err := discovery.File("")
	require.ErrorIs(t, err, discovery.ErrBadConfig)
}

// A file is read anew each time; of one that is half written, or has a line that is no target, nothing is taken
// (BOOT-1, BOOT-7).
func TestFileChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "targets")
	d, err := discovery.File(name)
	require.NoError(t, err)
	look := func() ([]string, error) {
		list, err := d.Lookup(t.Context())
		return texts(list), err
	}
	write(t, name, "10.0.0.2:1 # the second\r\n10.0.0.1:1\n10.0.0.2:1\n")
	got, err := look()
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1:1", "10.0.0.2:1"}, got)

	write(t, name+".new", "10.0.0.3:1\n")
	require.NoError(t, os.Rename(name+".new", name))
	got, err = look()
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.3:1"}, got)

	for text, want := range map[string]error{
		"": discovery.ErrPartialFile, "10.0.0.1:1\n10.0.0.2:7": discovery.ErrPartialFile,
		"10.0.0.1:1\n\n10.0.0 2\n":                               discovery.ErrBadTarget,
		strings.Repeat("#", discovery.MaxFile) + "\n":            nil,
		strings.Repeat("10.0.0.1\n", discovery.MaxTargets+1):     discovery.ErrTooManyTargets,
		"10.0.0.1:1\n" + strings.Repeat("x", 300) + ":1\n":       discovery.ErrBadTarget,
		"10.0.0.1:1\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\n": discovery.ErrBadTarget,
	} {
		write(t, name, text)
		got, err = look()
		require.Error(t, err)
		require.Empty(t, got)
		if want != nil {
			require.ErrorIs(t, err, want)
		}
	}
	write(t, name, "10.0.0.1:1\n\n10.0.0 2\n")
	_, err = look()
	require.ErrorContains(t, err, "line 3")

	require.NoError(t, os.Remove(name))
	_, err = look()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Mkdir(name, 0o700))
	_, err = look()
	require.ErrorContains(t, err, "no regular file")
}

// FuzzFile looks at any bytes as a file: what is taken is as Lookup promises.
func FuzzFile(f *testing.F) {
	f.Add([]byte("10.0.0.1:7627\n"))
	f.Add([]byte("# nobody\n"))
	f.Add([]byte("[::1]:1 #\n\xff\n"))
	name := filepath.Join(f.TempDir(), "targets")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(name, text, 0o600))
		d, err := discovery.File(name)
		require.NoError(t, err)
		list, err := d.Lookup(t.Context())
		if err != nil {
			return
		}
		again, err := discovery.Normalize(list)
		require.NoError(t, err)
		require.Equal(t, again, list)
	})
}

// told answers what a test sets.
type told struct {
	list []discovery.Target
	err  error
}

func (f told) Lookup(ctx context.Context) ([]discovery.Target, error) {
	return f.list, errors.Join(f.err, ctx.Err())
}

// Several methods: the first that names somebody; with one that cannot tell, nothing is known (BOOT-1).
func TestAggregate(t *testing.T) {
	a, b := []discovery.Target{{Host: "a"}}, []discovery.Target{{Host: "b"}}
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		methods []discovery.Discovery
		want    []discovery.Target
		err     error
	}{
		{"the first", []discovery.Discovery{told{list: a}, told{list: b}}, a, nil},
		{"the second, the first has nobody", []discovery.Discovery{told{}, told{list: b}}, b, nil},
		{"the second, the first cannot tell", []discovery.Discovery{told{err: broken}, told{list: b}}, b, nil},
		{"nobody", []discovery.Discovery{told{}, told{}}, nil, nil},
		{"nobody, or one that cannot tell", []discovery.Discovery{told{err: broken}, told{}}, nil, broken},
	} {
		d, err := discovery.Aggregate(c.methods...)
		require.NoError(t, err)
		got, err := d.Lookup(t.Context())
		require.ErrorIs(t, err, c.err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	for _, wrong := range [][]discovery.Discovery{nil, {nil}, make([]discovery.Discovery, discovery.MaxAggregate+1)} {
		_, err := discovery.Aggregate(wrong...)
		require.ErrorIs(t, err, discovery.ErrBadConfig)
	}
	discoverytest.Run(t, discoverytest.Case{Empty: true, Ports: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			inner, err := discovery.Static(texts(targets)...)
			require.NoError(t, err)
			d, err := discovery.Aggregate(told{}, inner)
			require.NoError(t, err)
			return d
		}})
}
