// Help: what flags say of themselves where a line of source has no room for it.

package main

import "github.com/alecthomas/kong"

// texts are the variables of the tags.
var texts = kong.Vars{
	"exec_help": "How the entities are executed: inline on the event loop, worker, or blocking on goroutines of their " +
		"own.",
	"size_help":     "Bytes of payload, 16 to 1048576; the first 16 carry a stamp.",
	"inflight_help": "With --mode=ask: asks that each sender keeps under way, 1 to 4096; times --senders at most 65536.",
	"rate_help": "Messages per second of all senders together, with latency counted from when each was due; 0: as many " +
		"as are accepted.",
	"duration_help": "How long to measure, at least 100ms, after a quarter of it, at most 1s, to warm up.",
	"target_help": "Running nodes to send to, which loadgen serve has started: nothing but the sender is spawned, and " +
		"--nodes does not count.",
	"cluster_help": "With --target: name of the cluster.",
	"shards_help":  "Shards that they are spread over, 1 to 1048576; with --target the same as there.",
	"tlscert_help": "Certificate chain of this node, PEM, for the cluster's name; goes with --tls-key and --tls-ca.",
	"tls_help":     "Mutual TLS between the processes, with certificates that are thrown away.",
	"poll_help": "Event loops that have just had work look for more for so long before they sleep; 0: off, at most 1ms. " +
		"Ever less where that is in vain.",
	"timeout_help": "With --mode=ask: time limit of one ask.",
	"only_help": "Only measures that have this in their names: micro, route, link, tls, tell, ask, large, stalled, " +
		"hostile, scraped; the baseline bulk always runs.",
	"tellers_help": "Goroutines of each that send to the others, 1 to 64; one more sends to the slow one.",
	"press_help":   "How long the slow entity takes for one message, 1us to 1s.",
	"limit_help":   "Give up when it takes longer, with code 1.",
}
