// Help: what flags say of themselves where a line of source has no room for it.

package command

import "github.com/alecthomas/kong"

// strategies is what --resolver takes.
const strategies = "keep-majority,static-quorum,keep-oldest,lease-majority,down-all,unsafe-auto-down,off"

// texts are the variables of the tags.
var texts = kong.Vars{
	"strategies": strategies,
	"config_help": "File of settings, YAML: the names of these flags and their values. A flag, and its environment " +
		"variable, go before it.",
	"discovery_help": "Find the cluster by looking contact points up, not by --seeds: static, file, dns (addresses " +
		"of a name), srv (service records), kubernetes (pods of a label); docs/bootstrap.md.",
	"contact_help": "Address of this node's contact point, host:port, which others probe; port 0 takes a free one. " +
		"Beyond loopback it needs the three --tls flags, which it then uses, or --insecure.",
	"expected_help": "With --discovery: how many nodes the cluster begins with; 0: not known, and then --required " +
		"should be given.",
	"required_help": "With --discovery: how many nodes must be found, and in no cluster, before one is formed; 0: more " +
		"than half of --expected, or 2.",
	"formcluster_help": "With --discovery: form a cluster where there is none; without, only join one that exists.",
	"configcmd_help": "Print the settings that run would have, and where each came from; with --check=FILE, only look " +
		"whether that file is good.",
	"check_help": "Only look whether this file, in place of that of --config, and the files that it names are good: " +
		"exit code 2 if not.",
	"run_help": "Run one node until SIGINT or SIGTERM, then leave gracefully. SIGHUP reads --log-level, --stats-every, " +
		"certificates and the admin token anew.",
	"listen_help": "Address to listen on, host:port; port 0 takes a free one. One that is not loopback needs the three " +
		"--tls flags, or --insecure.",
	"seeds_help": "Contact points, host:port, in the same order on all nodes, this one among them or not. The first of " +
		"them forms the cluster when no other answers. None: a cluster of one, which others may join.",
	"datadir_help": "Directory of this node alone, for the record of its cluster's members: with it a restart while cut " +
		"off forms no second cluster. None: no record.",
	"joinall_help": "The admin interfaces of all members of a cluster: each in turn leaves it and joins the other one.",
	"rejoin_help": "When the cluster has ended the node (downed, removed, cut off, not admitted in time), go on as a " +
		"new member in place of an exit.",
	"formnew_help": "For one start, by an operator who knows that no cluster lives: form one when none is found, " +
		"whatever anybody remembers.",
	"roles_help": "Roles of this node: names that entity types and --resolver-role select members by.",
	"tlscert_help": "This node's certificate chain, PEM (see kith cert); goes with --tls-key and --tls-ca. Changes are " +
		"noticed.",
	"admin_help": "The admin interface of the node to ask: host:port, or a URL with https.",
	"adminca_help": "Authority that the admin interface's certificate is checked by, PEM; none: the machine's. With it " +
		"host:port is asked over TLS.",
	"servername_help": "Name that the certificate of the admin interface must have: that of its node, as kith cert " +
		"issue writes it, or a host; none: the host that is asked.",
	"tokenfile_help": "File with the token, which commands that change something need.",
	"serve_help": "Address of the admin interface, host:port; none: there is none. Beyond loopback it needs the three " +
		"--tls flags, whose certificate it shows, or --insecure.",
	"adminhosts_help": "Names by which the admin interface may be asked, where it listens on loopback without TLS, " +
		"beside IP addresses and localhost.",
	"admintoken_help": "File with the token by which the admin interface lets somebody change something, at least 16 " +
		"bytes; none: nobody can.",
	"join_help":  "End, with code 4, when not admitted in time; 0 means never.",
	"leave_help": "How long entities may take to move, and the rest to stop, before the node leaves anyway.",
	"resolver_help": "Which side of a broken cluster lives, the same on all nodes: keep-majority, static-quorum, " +
		"keep-oldest, lease-majority (needs --lease), down-all, unsafe-auto-down (all sides do: unsafe), off (none is " +
		"downed, an operator decides).",
	"lease_help": "The store of leases for lease-majority and --session, the same on all nodes: file:///DIRECTORY " +
		"(one machine), kubernetes://NAMESPACE; in builds of lease/kith etcd://HOST:PORT and " +
		"postgres://USER@HOST/DATABASE, too; docs/leases.md.",
	"session_help": "Each node holds a session lease in --lease: a lost node's shards live elsewhere in 5 to 6 s; " +
		"without the store nothing is handled; the same on all nodes; docs/failover.md.",
	"outage_help": "How long the store of --session may be away before nodes end, at least 8 times --session-ttl, the " +
		"same on all nodes.",
	"tenure_help": "Nodes handle messages while a quorum of seats vouches for them, which members hold: a lost node's " +
		"shards live elsewhere in 3 to 5 s; without a quorum nothing is handled; the same on all nodes; docs/failover.md.",
	"refound_help": "How it is known that lost holders of seats of --tenure have ended, so that others may hold them: " +
		"operator, by kith refound, or takeover, a takeover time after they were seen down; the same on all nodes.",
	"grant_help": "How long a grant of a seat counts, 500ms to 1m, the same on all nodes: a node that stands still for " +
		"longer handles nothing.",
	"balance_help": "How often the balance of a type whose shards are even is looked at where this node coordinates it: " +
		"shards move from who has many to who has few, in rounds that follow one another; negative: never.",
	"quorum_help": "With static-quorum, and needed there: least members of a side that lives; there must never be more " +
		"than twice as many less one.",
	"poll_help": "Event loops that have just had work look for more for so long before they sleep; 0: off, at most 1ms. " +
		"Ever less where that is in vain.",
	"patience_help": "How soon a lost member is given up, the same on all nodes: normal (bears stalls of 3s), calm " +
		"(1s, for machines and networks without them), noisy (6s); docs/failover.md.",
	"pause_help": "Silence of a member that is borne beyond the rhythm of its answers, the same on all nodes; 0: by " +
		"--patience.",
	"takeover_help": "How long the entities of a lost member wait before they live elsewhere, the same on all nodes; 0: " +
		"as long as one that is cut off may go on, and shorter is refused. Without a resolver 20s.",
	"deathproof_help": "A refused connection proves a process dead, whose entities live elsewhere at once. Only where " +
		"nothing between the nodes can refuse for a process that lives.",
	"stable_help": "How long nothing may change before the resolver decides, at least 100ms; 0: by cluster size, 5.5s " +
		"up to 5 members, 30s above 100.",
	"demo_help":       "Host the demo entities: counters that answer with the number of messages they had.",
	"demoshards_help": "Shards of the demo entities, 1 to 1048576; the same on all nodes.",
	"devkill_help": "Kill the newest node instead of having the oldest leave, and wait until its shards live on the " +
		"others. Whoever kills another process does no harm then: kill -9, with the process number that is shown.",
	"devpage_help": "Address of the dashboard of the cluster, host:port; port 0 takes a free one. Empty: there is none.",
	"old_help": "The program of another build of this command, which every second process runs; the dashboard shows " +
		"none of these (see make upgrade).",
}
