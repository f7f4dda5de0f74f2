// The import matrix: which of our own packages a package may import.

package rules

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the name of the module's root package in the matrix.
const root = "root"

// matrix is ARCHITECTURE.md's table of layers. Imports point down only. A package that does not exist yet keeps its
// row, so that it is bound from its first line; internal/invariant and internal/enum are open to all.
var matrix = map[string]string{
	"wire": "", "ringbuf": "", "discovery": "internal/names internal/files", "internal/invariant": "", "internal/enum": "",
	"internal/callback": "", // calls functions of users
	"internal/dues":     "", // many things that are due at some time
	"internal/incall":   "", // which goroutine a call runs on
	// clients that break the rules; it speaks of the counters of a node
	"internal/hostile": "root courier route peer wire internal/pki",
	"internal/pki":     "internal/files", // certificates for commands, throw-away clusters and tests
	"peer":             "wire",
	"route":            "peer wire",
	"sparse":           "route",
	"internal/loads":   "shard/strategy route", // what shards cost: meters at regions, pages at coordinators
	"stats":            "peer",
	"flow":             "route peer stats wire ringbuf",
	"entity":           "shard/strategy route peer ringbuf internal/incall",
	"gossip":           "peer wire",
	"fd":               "peer",
	"plane":            "flow route peer wire",
	"lifetime":         "route",
	"internal/leases":  "route", // when a lease is asked for, confirmed, lost and given back
	"courier":          "peer stats wire",
	"sbr/leasetest":    "",   // the suite for leases; it may import testing
	"fd/fdtest":        "fd", // the suite for detectors; it may import testing
	// the suite for discovery; it may import testing
	"discovery/discoverytest": "discovery",
	"hello":                   "route peer wire",
	"trust":                   "hello route internal/files internal/callback",
	"loop":                    "route wire", // gnet's, as transport is
	"transport":               "flow route peer stats wire ringbuf hello loop trust internal/names",
	"cluster":                 "peer",
	"members":                 "cluster gossip fd peer wire",
	"membership":              "gossip fd peer wire cluster members",
	"crdt":                    "gossip peer wire",
	"sbr":                     "membership peer",
	"singleton":               "membership peer wire",
	"shard":                   "internal/loads shard/strategy membership flow sparse route peer wire",
	"shard/strategy":          "cluster route peer wire",
	"formation":               "peer wire",
	"shutdown":                "membership route peer",
	"node":                    "hello membership sbr singleton shard crdt courier route peer stats wire",
	// what a node was given, in a ring, and given again
	"internal/flight": "node membership fd shard shard/strategy route peer wire courier",
	"sim/setup":       "node membership shard plane flow wire",
	"world": "sim/setup node sbr membership members courier shard hello plane lifetime entity flow formation sparse " +
		"internal/flight internal/leases route peer wire stats shard/strategy",
	"check": "sim/setup world node sbr membership courier shard plane route peer wire",
	"storm": "sim/setup world check node sparse membership shard shard/strategy plane entity flow route peer wire " +
		"internal/leases",
	"sim":   "sim/setup world check membership lifetime entity route",
	"exec":  "transport loop plane lifetime entity sparse route peer wire internal/callback internal/dues",
	"scale": "membership members peer wire",
	"proof": "sbr membership peer",
	"model": "", // hand-off as a model of its own; it shares nothing with the code
	// real nodes that find each other by DNS
	"internal/bootruns": "",
	// starts of nodes that know nobody, simulated
	"internal/starts": "formation peer wire",
	"driver": "node exec shutdown transport trust hello loop plane entity flow shard membership route peer " +
		"internal/flight internal/leases stats wire ringbuf internal/feed internal/survey shard/strategy internal/logs " +
		"internal/fileid internal/files internal/callback internal/incall",
	root: "driver shutdown sbr discovery membership cluster fd shard shard/strategy entity crdt route peer stats " +
		"internal/leases",
	"admin":    "root latency internal/localname internal/logs internal/refuse internal/door",
	"examples": root,
	"latency":  root,
	"metrics":  "root stats",
	"bootstrap": "root discovery formation peer wire internal/localname " +
		"internal/logs internal/refuse internal/names internal/door internal/callback",
	"bench": "root transport trust hello loop flow ringbuf wire",
	// old commits beside this one; the program is compiled against them too
	"bench/gate":         "internal/cli",
	"bench/gate/program": "root",

	// the node binary: two programs of one package, by the name that it has and by the one that it had
	"cmd/kith": "internal/command",
	"cmd/node": "internal/command",
	"internal/command": "root latency metrics admin bootstrap internal/cli internal/cli/env internal/ledger " +
		"internal/pki internal/operate internal/settings internal/flight discovery internal/logs internal/files",
	// the laboratory: what proves and measures
	"cmd/lab": "root storm scale proof model internal/cli internal/cli/env internal/chaos internal/rolling " +
		"internal/shardscale internal/starts internal/bootruns",

	"internal/cli/env/envtest": "", // every flag of a program, for its tests

	"internal/operate":    "admin internal/cli internal/files", // the verbs that ask a running node
	"internal/localname":  "",                                  // names that a listener on loopback answers to
	"internal/refuse":     "",                                  // requests over HTTP that no route is asked about
	"internal/door":       "",                                  // who comes in at a port with HTTP, and what they cost
	"internal/files":      "",                                  // files that somebody gave a node
	"internal/settings":   "internal/files",                    // flags from a file and the environment
	"internal/fileid":     "",                                  // a file, told from its copies
	"internal/names":      "",                                  // names that are dialled, and what is remembered of them
	"internal/shardscale": "root internal/cli",
	// rolling restarts
	"internal/rolling": "root internal/chaos internal/cli internal/ledger internal/port internal/pki",
	"cmd/loadgen": "root bench admin metrics latency internal/cli internal/pki internal/hostile bootstrap " +
		"discovery",
	"internal/cli/env": "internal/cli internal/logs", // streams, exit codes and command line of a program of commands
	"internal/cli":     "root latency wire",          // what both commands share: child processes, last lines, statistics
	// real processes under faults: the harness and the child that it starts
	"internal/chaos":  "root admin internal/cli internal/logs internal/bootruns",
	"internal/ledger": "",                      // what entities have received, held against what was sent
	"internal/survey": "shard route peer wire", // what all members have of a type
	"internal/feed":   "",                      // events for readers, each at its own pace
	"internal/logs":   "",                      // what waits for a logger, and who carries it there
	"internal/api":    "",                      // lists what packages export, for a test

	"internal/rules":    "",
	"internal/planted":  "",
	"internal/spent":    "", // what tests allocate
	"internal/long":     "", // tests that make test leaves out
	"internal/port":     "", // ports for tests and for processes that come again
	"internal/contract": "peer wire",

	"shard/strategytest": "shard/strategy cluster route peer", // the suite for strategies; it may read the clock
}

// layers in the order of ARCHITECTURE.md, ground first.
var layers = []string{
	"ringbuf wire discovery discovery/discoverytest internal/invariant internal/enum internal/rules internal/planted " +
		"internal/port internal/spent internal/pki internal/api internal/feed internal/localname internal/refuse " +
		"internal/incall internal/logs internal/long internal/names internal/fileid internal/door " +
		"internal/files internal/callback internal/dues",
	"entity flow route peer cluster stats sparse shard/strategy internal/loads",
	"plane lifetime internal/leases transport fd fd/fdtest gossip courier internal/contract hello trust loop",
	"membership crdt members",
	"shard shard/strategytest sbr sbr/leasetest singleton formation shutdown",
	"node exec internal/survey internal/flight",
	"driver sim/setup world check storm sim scale proof model internal/starts",
	root,
	"admin bootstrap examples latency metrics internal/hostile bench bench/gate/program",
	"internal/cli internal/cli/env internal/cli/env/envtest internal/bootruns " +
		"internal/ledger internal/chaos internal/rolling internal/shardscale internal/operate " +
		"internal/settings internal/command cmd/kith cmd/node cmd/lab cmd/loadgen " +
		"bench/gate",
}

// inside lists the packages that no embedder imports: they lie under internal/ and go by their short names here.
var inside = strings.Fields("driver exec transport trust hello loop plane flow courier node members scale proof " +
	"world check storm lifetime model sparse")

// short cuts internal/ off the folder of a package inside it.
func short(dir string) string {
	rest, found := strings.CutPrefix(dir, "internal/")
	if first, _, _ := strings.Cut(rest, "/"); found && slices.Contains(inside, first) {
		return rest
	}
	return dir
}

// packageOf returns the longest row of the matrix that covers a folder, or the folder itself. Of a package inside it
// returns the short name.
func packageOf(dir string) string {
	if dir == "." {
		return root
	}
	dir = short(dir)
	for at := dir; at != ""; {
		if _, ok := matrix[at]; ok {
			return at
		}
		cut := strings.LastIndexByte(at, '/')
		at = at[:max(cut, 0)]
	}
	return dir
}

// imports judges the own imports of one file. Tests may look upwards: an outside test of a package may run it in the
// simulator.
func imports(s *source) []finding {
	if s.tests {
		return nil
	}
	allowed, known := matrix[s.pkgName]
	if !known {
		return []finding{s.at(s.file.Package, "package %q has no row in the import matrix", s.pkgName)}
	}
	var found []finding
	for _, spec := range s.file.Imports {
		target := importPath(spec)
		if target != module && !strings.HasPrefix(target, module+"/") {
			continue
		}
		pkgName := root
		if target != module {
			pkgName = packageOf(strings.TrimPrefix(target, module+"/"))
		}
		open := pkgName == s.pkgName || pkgName == "internal/invariant" || pkgName == "internal/enum"
		if !open && !slices.Contains(strings.Fields(allowed), pkgName) {
			found = append(found, s.at(spec.Pos(), "%s may not import %s (allowed: %s)", s.pkgName, pkgName, allowed))
		}
	}
	return found
}

// TestImportMatrix holds every import of the module against the matrix (CARD-2).
func TestImportMatrix(t *testing.T) { judge(t, imports) }

// TestMatrixPointsDown proves that the matrix itself has no cycle: every allowed import lies on a lower layer, or on
// the same layer without a way back (CARD-2).
func TestMatrixPointsDown(t *testing.T) {
	layer := map[string]int{}
	for i, pkgNames := range layers {
		for _, pkgName := range strings.Fields(pkgNames) {
			require.NotContains(t, layer, pkgName)
			layer[pkgName] = i
		}
	}
	for pkgName, allowed := range matrix {
		require.Contains(t, layer, pkgName)
		for _, below := range strings.Fields(allowed) {
			require.Contains(t, matrix, below, "row of %s", pkgName)
			require.LessOrEqual(t, layer[below], layer[pkgName], "%s imports %s", pkgName, below)
		}
	}
	for pkgName := range matrix {
		require.NoError(t, walk(pkgName, nil))
	}
}

// TestLayersAreDrawn demands that the table of ARCHITECTURE.md has every package that there is once, and on its layer.
func TestLayersAreDrawn(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "## Layers\n")
	table, _, _ = strings.Cut(table, "\nWhat no embedder imports")
	drawn, layer := make([][]string, len(layers)), -1
	for _, line := range strings.Split(table, "\n") {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		words := strings.Fields(line)
		if n, err := strconv.Atoi(words[0]); err == nil {
			layer, words = n-1, strings.Fields(line[20:]) // behind the number stands what the layer is for
		}
		require.GreaterOrEqual(t, layer, 0, line)
		drawn[layer] = append(drawn[layer], words...)
	}
	for i, pkgNames := range layers {
		var there []string
		for _, pkgName := range strings.Fields(pkgNames) {
			switch {
			case pkgName == root:
				there = append(there, "kith", "(root)")
			case exists(pkgName):
				there = append(there, pkgName)
			}
		}
		require.ElementsMatch(t, there, drawn[i], "layer %d", i+1)
	}
}

// exists reports whether a package of the matrix has been written.
func exists(pkgName string) bool {
	first, _, _ := strings.Cut(pkgName, "/")
	if slices.Contains(inside, first) {
		pkgName = "internal/" + pkgName
	}
	info, err := os.Stat("../../" + pkgName)
	return err == nil && info.IsDir()
}

// walk follows every allowed import and returns an error when it comes back to where it was.
func walk(pkgName string, path []string) error {
	if slices.Contains(path, pkgName) {
		return fmt.Errorf("cycle: %v", append(path, pkgName))
	}
	for _, below := range strings.Fields(matrix[pkgName]) {
		if err := walk(below, append(slices.Clone(path), pkgName)); err != nil {
			return err
		}
	}
	return nil
}
