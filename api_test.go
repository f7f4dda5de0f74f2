// Tests of the exported surface: it is the one in api.txt, and nobody is shown a type that cannot be looked up.

package kith_test

import (
	"flag"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/lab/api"
)

var update = flag.Bool("update", false, "rewrite api.txt")

const module = "github.com/kith-io/kith"

// promised are the packages that embedders may rely on, whole. Of the others (their documentation says so) they may
// rely on the types that these lead to: their exported fields and methods.
var promised = strings.Fields(`kith cluster peer route stats shutdown discovery discovery/discoverytest bootstrap admin
	metrics latency sim fd fd/fdtest lease shard/strategy shard/strategytest sbr/leasetest replicated
	replicated/replicatedtest topic store store/storetest partition durable durable/durabletest delivery
	sqlfence service gateway quorum quorum/disk quorum/disk/disktest`)

// stillHidden are types of internal packages that exported names lead to. The list may only shrink.
var stillHidden = []string{
	// a pool that simulated clusters share; no setting of a node
	"membership.Config.Intern leads to " + module + "/internal/core/members.Intern",
	"membership.Intern leads to " + module + "/internal/core/members.Intern",
	// bounds that the project's own scripts and storms draw
	"sim.Config.Courier leads to " + module + "/internal/core/courier.Config",
	"sim.Config.Membership.Intern leads to " + module + "/internal/core/members.Intern",
	"setup.Config.Courier leads to " + module + "/internal/core/courier.Config",
	"setup.Config.Membership.Intern leads to " + module + "/internal/core/members.Intern",
}

// TestAPI holds what embedders may rely on against api.txt, and prints what a change adds and what it breaks (CARD-2).
// `go test . -run TestAPI -update` rewrites the file (API-1).
func TestAPI(t *testing.T) {
	t.Parallel()
	all, err := api.Public(".")
	require.NoError(t, err)
	names := map[*types.Package]string{}
	var whole []*types.Package
	for _, p := range all {
		name, _ := strings.CutPrefix(p.Path(), module+"/")
		names[p] = strings.TrimPrefix(name, "github.com/kith-io/")
		if slices.Contains(promised, names[p]) {
			whole = append(whole, p)
		}
	}
	require.Len(t, whole, len(promised), "a promised package is gone")
	reached := api.Reached(whole...)
	var is []string
	for _, p := range all {
		if slices.Contains(whole, p) {
			is = append(is, api.Lines(p, names[p])...)
		} else {
			is = append(is, api.LinesOf(p, names[p], reached)...)
		}
	}
	slices.Sort(is)
	if *update {
		require.NoError(t, os.WriteFile("api.txt", []byte(strings.Join(is, "\n")+"\n"), 0o644))
	}
	text, err := os.ReadFile("api.txt")
	require.NoError(t, err)
	was := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.True(t, slices.IsSorted(was), "api.txt is not sorted: -update writes it")
	gone, added := api.Changed(was, is)
	for _, line := range gone {
		t.Errorf("breaks:  %s", line)
	}
	for _, line := range added {
		t.Errorf("adds:    %s", line)
	}
	if len(gone)+len(added) > 0 {
		t.Error("the exported surface is not the one in api.txt. If that is meant, and what it breaks is worth it: " +
			"go test . -run TestAPI -update")
	}
}

// TestEnginesPromiseNothing: a public package that is not promised says so where go doc shows it (API-1).
func TestEnginesPromiseNothing(t *testing.T) {
	t.Parallel()
	all, err := api.Public(".")
	require.NoError(t, err)
	for _, p := range all {
		name, _ := strings.CutPrefix(p.Path(), module+"/")
		if slices.Contains(promised, strings.TrimPrefix(name, "github.com/kith-io/")) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		require.NoError(t, err)
		says := false
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			require.NoError(t, err)
			says = says || strings.Contains(strings.Join(strings.Fields(f.Doc.Text()), " "),
				"It is no part of what embedders may rely on")
		}
		require.True(t, says, p.Path())
	}
}

// TestAPIHidesNoType: whatever an exported name of a public package leads to can be looked up with go doc
// (CARD-2, API-1).
func TestAPIHidesNoType(t *testing.T) {
	t.Parallel()
	all, err := api.Public(".")
	require.NoError(t, err)
	var found []string
	for _, p := range all {
		for _, hidden := range api.Hidden(p) { // what other modules hide is theirs
			if strings.Contains(hidden, " leads to github.com/kith-io/kith/") {
				found = append(found, hidden)
			}
		}
	}
	require.Equal(t, stillHidden, found)
}

var ofConfig = regexp.MustCompile(`([\w]+\.)?\bConfig\.([A-Z]\w*)`)

// Comments of the packages that embedders read name fields where they are: Config.Sharding.ParkTime, and not
// Config.ParkTime (CARD-5).
func TestCommentsNameFieldsOfConfig(t *testing.T) {
	looked := 0
	for _, dir := range []string{".", "entity", "route", "cluster", "stats"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for n, line := range strings.Split(string(text), "\n") {
				_, comment, is := strings.Cut(line, "//")
				if !is {
					continue
				}
				for _, m := range ofConfig.FindAllStringSubmatch(comment, -1) {
					if m[1] != "" && m[1] != "kith." { // another package's
						continue
					}
					looked++
					_, field := reflect.TypeFor[kith.Config]().FieldByName(m[2])
					_, method := reflect.TypeFor[kith.Config]().MethodByName(m[2])
					require.True(t, field || method, "%s:%d: Config has no %s", file, n+1, m[2])
				}
			}
		}
	}
	require.Greater(t, looked, 20)
}
