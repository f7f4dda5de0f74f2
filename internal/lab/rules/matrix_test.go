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
// row, so that it is bound from its first line; internal/base/invariant and internal/base/enum are open to all.
var matrix = map[string]string{
	"wire": "", "ringbuf": "", "discovery": "internal/base/names internal/base/files internal/base/kubeapi",
	"internal/base/invariant": "", "internal/base/enum": "",
	"internal/base/callback":      "", // calls functions of users
	"internal/base/logs/logstest": "", // a log that tests read
	"internal/base/dues":          "", // many things that are due at some time
	"internal/base/incall":        "", // which goroutine a call runs on
	"internal/base/latch":         "", // a lock
	"internal/base/ground":        "", // goroutines and clocks, or the simulator's
	"internal/base/life":          "", // a lock that tells whether a process is dead
	"internal/base/signals":       "", // what the system signals to a process
	"internal/base/descriptors":   "", // files in reserve, for connections of peers
	"internal/base/memlimit":      "", // how much memory it leaves to a process
	// clients that break the rules; it speaks of the counters of a node
	"internal/lab/hostile":  "root courier route peer wire internal/base/pki",
	"internal/base/pki":     "internal/base/files", // certificates for commands, throw-away clusters and tests
	"peer":                  "wire",
	"route":                 "peer wire",
	"sparse":                "route",
	"internal/core/loads":   "shard/strategy route", // what shards cost: meters at regions, pages at coordinators
	"stats":                 "peer",
	"flow":                  "route peer stats wire ringbuf",
	"entity":                "shard/strategy route peer ringbuf internal/base/incall",
	"gossip":                "peer wire",
	"fd":                    "peer",
	"plane":                 "flow route peer wire",
	"lifetime":              "route peer",
	"internal/core/leases":  "route", // when a lease is asked for, confirmed, lost and given back
	"internal/core/session": "peer",  // the session lease of a node, and the ends of others'
	"internal/core/tenure":  "cluster peer wire",
	// watches of entities: to the homes of those that are watched, and back
	"internal/core/watch": "cluster entity route peer wire",
	"courier":             "peer stats wire",
	// replicated values as a machine, and what runs it beside the control goroutine
	"internal/core/replica":    "cluster peer stats wire",
	"internal/core/quorum":     "gossip peer wire quorum/disk",                     // values on N replicas' disks
	"internal/runtime/parcels": "internal/core/quorum peer quorum/disk stats wire", // messages of services between nodes
	// values on N replicas' disks, for programs; what it needs of a disk; and the suite for that, which may import testing
	"quorum": "root driver gossip internal/core/quorum internal/core/quorum/records internal/runtime/fenced " +
		"internal/runtime/parcels quorum/disk peer stats store wire",
	"quorum/disk":          "",
	"quorum/disk/disktest": "quorum/disk",
	// records on the same disks, under fences, and the same as a store
	"internal/core/quorum/records": "internal/core/quorum peer route wire",
	"internal/runtime/fenced":      "internal/core/quorum/records peer route store",
	"internal/runtime/replicas":    "internal/core/replica internal/base/callback cluster peer stats wire",
	"replicated":                   "root driver internal/core/replica internal/runtime/replicas peer wire",
	"topic": "root driver entity membership replicated route peer wire shard/strategy internal/base/ground " +
		"internal/runtime/footing",
	"partition": "root driver membership entity cluster internal/core/partition plane route peer wire " +
		"shard/strategy internal/base/ground internal/runtime/footing",
	// what partitions and topics need of a node, and what stands for it in storms
	"internal/runtime/footing": "entity membership peer route shard/strategy internal/base/ground",
	"internal/sim/virtual":     "world route internal/base/ground", // goroutines and clocks in a simulated process
	"internal/lab/hosting": "root partition storm world node cluster membership entity shard shard/strategy peer " +
		"route internal/runtime/footing internal/sim/virtual topic replicated internal/core/replica",
	"replicated/replicatedtest": "replicated peer", // the suite for values; it may import testing
	// what durable entities need of a store, and the suite for engines; it may import testing
	"store":               "route",
	"durable":             "root route store wire internal/base/ground internal/base/logs",
	"durable/durabletest": "durable delivery root sim world store route internal/base/ground internal/sim/virtual",
	// storms of durable entities
	"internal/lab/durables": "root durable durable/durabletest store sim world check storm membership shard route wire",
	// messages that are kept until they are acknowledged, to entities without a state in a store
	"delivery": "root entity route store wire internal/base/ground internal/base/logs",
	// asks and tells to entities over HTTP
	"gateway":         "root route internal/base/door internal/base/refuse",
	"sqlfence":        "root", // states of entities in a SQL database, under fences
	"store/storetest": "store route",
	"lease":           "internal/base/life internal/base/kubeapi", // locks outside of the cluster
	"sbr/leasetest":   "",                                         // the suite for leases; it may import testing
	"fd/fdtest":       "fd",                                       // the suite for detectors; it may import testing
	// the suite for discovery; it may import testing
	"discovery/discoverytest": "discovery",
	"hello":                   "route peer wire",
	"trust":                   "hello route internal/base/files internal/base/callback",
	"loop":                    "route wire", // gnet's, as transport is
	"transport": "flow route peer stats wire ringbuf hello loop trust internal/base/names internal/base/descriptors " +
		"internal/base/latch",
	"cluster": "peer",
	// the partition table as a value
	"internal/core/partition": "cluster peer wire",
	"members":                 "cluster gossip fd peer wire internal/core/partition internal/core/tenure",
	"membership":              "gossip fd peer wire cluster members internal/core/partition internal/core/tenure",
	"sbr":                     "membership peer",
	"shard":                   "internal/core/loads shard/strategy membership flow sparse route peer wire",
	"shard/strategy":          "cluster route peer wire",
	"bootstrap/formation":     "peer wire",
	"shutdown":                "membership route peer",
	"node": "cluster hello membership sbr shard courier " +
		"route peer stats wire internal/core/watch internal/core/session internal/core/tenure",
	// what a node was given, in a ring, and given again
	"internal/core/flight": "node membership fd shard shard/strategy route peer wire courier internal/core/watch",
	"sim/setup":            "cluster node membership shard plane flow wire",
	"world": "sim/setup node sbr membership members courier shard hello plane lifetime entity flow " +
		"bootstrap/formation sparse " +
		"internal/core/flight internal/core/leases internal/core/replica internal/core/watch route peer wire stats " +
		"shard/strategy",
	"check": "internal/core/partition sim/setup world node sbr membership courier shard plane entity route peer " +
		"wire",
	"storm": "internal/core/partition cluster sim/setup world check node sparse membership shard shard/strategy plane " +
		"entity flow route peer wire internal/core/leases internal/core/replica",
	"sim": "sim/setup world check membership lifetime entity route",
	"exec": "transport loop plane lifetime entity sparse route peer wire stats internal/core/watch " +
		"internal/base/callback internal/base/dues",
	"scale":                      "cluster membership members peer wire",
	"proof":                      "sbr membership peer",
	"model":                      "", // hand-off as a model of its own; it shares nothing with the code
	"internal/sim/model/explore": "", // what the models beside it share
	// messages between durable entities as a model, in the same way
	"internal/sim/model/once": "internal/sim/model/explore",
	// fenced records on the disks of N members as a model, in the same way
	"internal/sim/model/quorum": "internal/sim/model/explore",
	// session leases as a model, in the same way
	"internal/sim/model/session": "internal/sim/model/explore",
	// tenure with a fixed electorate as a model, in the same way
	"internal/sim/model/tenure": "internal/sim/model/explore",
	// hand-off of instances as a model of package partition; the table is the code's own
	"model/instances": "model internal/core/partition cluster peer",
	// real nodes that find each other by DNS
	"internal/lab/bootruns": "",
	// starts of nodes that know nobody, simulated
	"internal/sim/starts": "bootstrap/formation peer wire",
	"driver": "cluster internal/core/replica internal/runtime/replicas internal/runtime/parcels " +
		"internal/core/partition internal/core/watch " +
		"node exec shutdown transport trust hello loop plane entity flow shard membership route peer " +
		"internal/core/flight internal/core/leases stats wire ringbuf internal/base/feed internal/core/survey " +
		"shard/strategy internal/base/logs " +
		"internal/base/fileid internal/base/life internal/base/files internal/base/callback internal/base/incall quorum/disk",
	root: "driver shutdown sbr discovery membership cluster fd shard shard/strategy entity route peer stats " +
		"internal/core/leases quorum/disk",
	"admin": "root driver internal/core/quorum internal/runtime/parcels peer latency internal/base/localname " +
		"internal/base/logs internal/base/refuse internal/base/door",
	"examples": "root replicated topic partition service",
	"latency":  root,
	// a program with a node, from its start to its exit code
	"service": "root admin bootstrap metrics latency internal/base/files internal/base/pki internal/base/logs " +
		"internal/base/signals internal/base/memlimit",
	"metrics": "root stats",
	"bootstrap": "root discovery bootstrap/formation peer wire internal/base/localname " +
		"internal/base/logs internal/base/refuse internal/base/names internal/base/door internal/base/callback",
	"bench": "root transport trust hello loop flow ringbuf wire",
	// old commits beside this one; the program is compiled against them too
	"bench/gate":         "internal/cli",
	"bench/gate/program": "root",

	// the node binary: two programs of one package, by the name that it has and by the one that it had
	"cmd/kith": "internal/cli/command",
	"cmd/node": "internal/cli/command",
	"internal/cli/command": "root service latency admin bootstrap internal/cli internal/cli/env internal/cli/ledger " +
		"internal/base/signals internal/base/pki internal/cli/fleet internal/cli/operate internal/cli/settings " +
		"internal/core/flight discovery lease internal/base/logs internal/base/files",
	// the laboratory: what proves and measures
	"cmd/lab": "root storm scale proof model internal/cli internal/cli/env internal/cli/fleet internal/lab/chaos " +
		"internal/sim/model/once internal/sim/model/quorum internal/sim/model/session " +
		"internal/sim/model/tenure model/instances internal/sim/model/explore " +
		"internal/lab/rolling internal/lab/shardscale internal/sim/starts internal/lab/bootruns internal/lab/instances " +
		"internal/lab/durables internal/lab/leasestore internal/lab/hosting",

	"internal/cli/env/envtest": "internal/cli internal/cli/env", // what tests of a program of commands share

	// the verbs that ask a running node
	"internal/cli/operate": "admin internal/cli internal/base/files internal/core/flight",

	"internal/base/localname": "", // names that a listener on loopback answers to
	"internal/base/refuse":    "", // requests over HTTP that no route is asked about
	// clients that come in at a port with HTTP, and what they cost
	"internal/base/door":    "",
	"internal/base/files":   "",                    // files that somebody gave a node
	"internal/base/kubeapi": "internal/base/files", // the API of Kubernetes, as a pod asks it
	"internal/cli/settings": "internal/base/files", // flags from a file and the environment
	"internal/base/fileid":  "",                    // a file, distinct from its copies
	// names that are dialled, and what is remembered of them
	"internal/base/names":     "",
	"internal/lab/shardscale": "root internal/cli internal/cli/fleet",
	// partitions on real processes
	"internal/lab/instances": "root partition cluster internal/cli internal/cli/fleet internal/lab/chaos",
	// rolling restarts
	"internal/lab/rolling": "root internal/lab/chaos internal/cli internal/cli/ledger internal/cli/fleet " +
		"internal/base/port",
	"cmd/loadgen": "root bench admin metrics latency internal/cli internal/cli/env internal/cli/fleet " +
		"internal/lab/hostile internal/base/door bootstrap " +
		"discovery",
	// streams, exit codes and command line of a program of commands
	"internal/cli/env": "root internal/cli internal/base/logs",
	// what both commands share: child processes, last lines, statistics
	"internal/cli": "root latency wire",
	// real processes under faults: the harness and the child that it starts
	"internal/lab/chaos": "cluster node root admin internal/cli internal/cli/fleet internal/base/logs " +
		"internal/base/signals internal/lab/bootruns internal/lab/leasestore lease",
	// several node processes of one command
	"internal/cli/fleet":   "root internal/cli internal/cli/ledger internal/base/pki",
	"internal/cli/ledger":  "",                      // what entities have received, held against what was sent
	"internal/core/survey": "shard route peer wire", // what all members have of a type
	"internal/base/feed":   "",                      // events for readers, each at its own pace
	"internal/base/logs":   "",                      // what waits for a logger, and the goroutine that carries it there
	"internal/lab/api":     "",                      // lists what packages export, for a test
	"internal/lab/cuts":    "",                      // proxies between node processes, which cut them off

	"internal/lab/pgserver":   "",                        // PostgreSQL servers for tests and commands
	"internal/lab/etcdserver": "internal/base/port",      // etcd servers for the same
	"internal/lab/leasestore": "internal/lab/etcdserver", // stores of leases that can be broken
	// API servers of Kubernetes for tests
	"internal/lab/kubeserver": "internal/lab/etcdserver internal/base/pki internal/base/port",
	// what durable entities and queues cost beside an engine
	"internal/lab/storebench": "root durable delivery route store",
	// queues of package delivery over an engine, judged
	"internal/lab/queuetest": "root delivery route store store/storetest",
	"internal/lab/rules":     "",
	"internal/lab/planted":   "",
	"internal/base/spent":    "", // what tests allocate
	"internal/base/long":     "", // tests that make test leaves out
	"internal/base/port":     "", // ports for tests and for processes that come again
	"internal/base/contract": "peer wire",

	"shard/strategytest": "shard/strategy cluster route peer", // the suite for strategies; it may read the clock
}

// layers in the order of ARCHITECTURE.md, ground first.
var layers = []string{
	"ringbuf wire lease discovery discovery/discoverytest internal/base/kubeapi internal/base/invariant " +
		"internal/base/enum internal/lab/rules " +
		"internal/lab/planted " +
		"internal/base/port internal/base/spent internal/base/pki internal/lab/api internal/lab/cuts internal/base/feed " +
		"internal/lab/pgserver internal/lab/etcdserver internal/lab/leasestore internal/lab/kubeserver " +
		"internal/base/localname internal/base/refuse " +
		"internal/base/latch internal/base/life internal/base/memlimit internal/base/descriptors " +
		"internal/base/ground internal/base/signals " +
		"internal/base/incall internal/base/logs internal/base/long internal/base/names internal/base/fileid " +
		"internal/base/door " +
		"internal/base/files internal/base/callback internal/base/dues internal/base/logs/logstest " +
		"quorum/disk quorum/disk/disktest",
	"entity flow route peer cluster stats sparse shard/strategy internal/core/loads " +
		"internal/core/partition",
	"plane lifetime internal/core/leases store store/storetest transport fd fd/fdtest gossip courier " +
		"internal/base/contract hello trust loop " +
		"internal/core/replica internal/core/watch internal/core/quorum internal/core/quorum/records " +
		"internal/core/session internal/core/tenure",
	"membership members",
	"shard shard/strategytest sbr sbr/leasetest bootstrap/formation shutdown",
	"node exec internal/core/survey internal/core/flight internal/runtime/replicas internal/runtime/parcels " +
		"internal/runtime/fenced internal/runtime/footing",
	"driver sim/setup world check storm sim scale proof model internal/sim/model/explore internal/sim/model/once " +
		"internal/sim/model/quorum internal/sim/model/session internal/sim/model/tenure internal/sim/starts " +
		"model/instances internal/sim/virtual",
	root,
	"admin bootstrap examples latency metrics internal/lab/hostile bench bench/gate/program replicated " +
		"replicated/replicatedtest topic partition durable durable/durabletest delivery sqlfence service " +
		"gateway quorum",
	"internal/cli internal/cli/env internal/cli/env/envtest internal/cli/fleet internal/lab/bootruns " +
		"internal/cli/ledger internal/lab/chaos internal/lab/rolling internal/lab/shardscale internal/cli/operate " +
		"internal/lab/instances internal/lab/storebench internal/lab/queuetest internal/lab/durables " +
		"internal/lab/hosting internal/cli/settings internal/cli/command cmd/kith cmd/node cmd/lab cmd/loadgen " +
		"bench/gate",
}

// inside lists packages that no embedder imports and that go by their short names here, by their room under internal/.
var inside = map[string]string{
	"driver": "runtime", "exec": "runtime", "transport": "runtime", "trust": "runtime", "loop": "runtime",
	"hello": "core", "plane": "core", "flow": "core", "courier": "core", "node": "core", "members": "core",
	"lifetime": "core", "sparse": "core", "scale": "sim", "proof": "sim", "world": "sim", "check": "sim",
	"storm": "sim", "model": "sim",
}

// short cuts internal/ and the room off the folder of a package inside it.
func short(dir string) string {
	rest, found := strings.CutPrefix(dir, "internal/")
	room, rest, _ := strings.Cut(rest, "/")
	if first, _, _ := strings.Cut(rest, "/"); found && rest != "" && inside[first] == room {
		return rest
	}
	return dir
}

// folderOf is the folder of a package, which may go by its short name.
func folderOf(pkgName string) string {
	first, _, _ := strings.Cut(pkgName, "/")
	if room := inside[first]; room != "" {
		return "internal/" + room + "/" + pkgName
	}
	return pkgName
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
		open := pkgName == s.pkgName || pkgName == "internal/base/invariant" || pkgName == "internal/base/enum"
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
	text, err := os.ReadFile("../../../ARCHITECTURE.md")
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
	info, err := os.Stat("../../../" + folderOf(pkgName))
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
