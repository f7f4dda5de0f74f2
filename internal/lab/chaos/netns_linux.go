// The carrier of network namespaces: each node has one of its own, joined to a bridge in another one; nft drops,
// loses and resets. Nothing of it shows in the machine's own network.

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/bootruns"
)

// namespaces is the carrier.
type namespaces struct {
	prefix  string
	nodes   int
	tunnels *tunnels // nil: the machine has no tunnel devices
	delay   time.Duration
	mbit    int             // that all links carry; zero: all that the machine can
	names   *bootruns.Names // nil: nodes are known by their addresses
	now     links

	madeFiles bool // spaceFiles was not there before
}

// spacePort is the port of every node: each has the ports of its namespace to itself.
const spacePort = 7355

// spacePrefix begins the names of all namespaces of all runs; the id of the run's process follows.
const spacePrefix = "kith-chaos-"

func newNamespaces(pid, nodes int) (faultDriver, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("not root: %w", errNetns)
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: %w", errNetns, err)
		}
	}
	removeLeftovers()
	n := &namespaces{prefix: spacePrefix + strconv.Itoa(pid), nodes: nodes, now: newLinks(nodes)}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// command runs a program with input and returns what it complains about.
func command(input string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return nil
}

func (n *namespaces) hub() string           { return n.prefix + "-hub" }
func (n *namespaces) space(slot int) string { return n.prefix + "-" + name(slot) }
func (n *namespaces) addr(slot int) string  { return fmt.Sprintf("10.77.0.%d", slot+1) }

// inside runs a program in the namespace of a node.
func (n *namespaces) inside(slot int, input string, args ...string) error {
	return command(input, append([]string{"ip", "netns", "exec", n.space(slot)}, args...)...)
}

// build makes the namespaces, their wires and their first rules.
func (n *namespaces) build() error {
	if err := command("", "ip", "netns", "add", n.hub()); err != nil {
		return err
	}
	err := command("link add br0 type bridge\nlink set br0 up\n", "ip", "-n", n.hub(), "-batch", "-")
	if err != nil {
		return err
	}
	for slot := range n.nodes {
		if err := command("", "ip", "netns", "add", n.space(slot)); err != nil {
			return err
		}
		wire := "w" + strconv.Itoa(slot+1)
		hub := fmt.Sprintf("link add %s type veth peer name eth0 netns %s\nlink set %s master br0 up\n", wire, n.space(slot),
			wire)
		own := fmt.Sprintf("link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n", n.addr(slot))
		err := errors.Join(command(hub, "ip", "-n", n.hub(), "-batch", "-"),
			command(own, "ip", "-n", n.space(slot), "-batch", "-"),
			n.inside(slot, marking(), "nft", "-f", "-"))
		if err != nil {
			return err
		}
	}
	if t, err := newTunnels(n.nodes, n.space, n.addr); err == nil {
		n.tunnels = t
	}
	return n.readyTunnels()
}

// readyTunnels takes the devices into use, without a route to them. Packets come back by another device than they would
// go by before and after a delay, which is no reason to drop them.
func (n *namespaces) readyTunnels() error {
	var errs []error
	for slot := range n.nodes {
		if n.tunnels == nil {
			break
		}
		up := fmt.Sprintf("link set %s mtu %d txqueuelen 10000 up\n", tunnelName, tunnelMTU)
		errs = append(errs, command(up, "ip", "-n", n.space(slot), "-batch", "-"))
		for _, dev := range []string{"all", tunnelName, "eth0"} {
			_ = n.inside(slot, "0\n", "tee", "/proc/sys/net/ipv4/conf/"+dev+"/rp_filter") // costs a few packets at most
		}
	}
	return errors.Join(errs...)
}

// setDelay makes all that leaves a node wait.
func (n *namespaces) setDelay(d time.Duration) error {
	if d == n.delay || n.tunnels == nil {
		return nil
	}
	n.tunnels.delay.Store(int64(d))
	verb := "replace"
	switch {
	case d > 0 && n.delay > 0:
		n.delay = d
		return nil
	case d == 0:
		verb = "del"
	}
	var errs []error
	for slot := range n.nodes {
		// Longer than the route by eth0, so it is taken instead.
		route := fmt.Sprintf("route %s 10.77.0.0/25 dev %s src %s\n", verb, tunnelName, n.addr(slot))
		errs = append(errs, command(route, "ip", "-n", n.space(slot), "-batch", "-"))
	}
	n.delay = d
	return errors.Join(errs...)
}

func (n *namespaces) about() string {
	about := "netns: a network namespace for each node, faults by nft"
	if n.tunnels != nil {
		about += ", delays by tunnels"
	} else {
		about += " (no tunnel devices here: no delays)"
	}
	if n.names != nil {
		about += ", nodes known by names"
	}
	return about
}

func (n *namespaces) can(k Kind) bool {
	switch k {
	case Delay:
		return n.tunnels != nil
	case DNS:
		return n.names != nil
	case SlowLink:
		_, err := exec.LookPath("tc")
		return err == nil
	}
	return true
}

// narrow makes the link of every node carry so many megabits a second each way, with 200 ms of what waits; zero: all
// that the machine can.
func (n *namespaces) narrow(mbit int) error {
	if mbit == n.mbit {
		return nil
	}
	verb, how := "replace", fmt.Sprintf(" tbf rate %dmbit burst 64kb latency 200ms", mbit)
	if mbit == 0 {
		verb, how = "del", ""
	}
	var errs []error
	for slot := range n.nodes {
		up := fmt.Sprintf("qdisc %s dev eth0 root%s\n", verb, how)
		down := fmt.Sprintf("qdisc %s dev w%d root%s\n", verb, slot+1, how)
		errs = append(errs, n.inside(slot, up, "tc", "-batch", "-"),
			command(down, "ip", "netns", "exec", n.hub(), "tc", "-batch", "-"))
	}
	n.mbit = mbit
	return errors.Join(errs...)
}

func (n *namespaces) place(slot int) (listen, advertise string, err error) {
	at := fmt.Sprintf("%s:%d", n.addr(slot), spacePort)
	if n.names == nil {
		return at, at, nil
	}
	return at, fmt.Sprintf("%s:%d", hostName(slot), spacePort), nil
}

// listenAt listens where the node of a slot alone comes to.
func (n *namespaces) listenAt(slot int) (ln net.Listener, err error) {
	err = inSpace(n.space(slot), func() error {
		ln, err = net.Listen("tcp4", "127.0.0.1:0")
		return err
	})
	return ln, err
}

// wrap has ip enter the namespace and become the process.
func (n *namespaces) wrap(slot int, o *cli.Options) {
	self := o.Path
	if self == "" {
		self, _ = os.Executable() // it is running
	}
	o.Args = append([]string{"netns", "exec", n.space(slot), self}, o.Args...)
	o.Path, _ = exec.LookPath("ip") // it was there a moment ago
}

// apply changes the rules of the nodes with changed ways.
func (n *namespaces) apply(l links) error {
	var errs []error
	delay, mbit := time.Duration(0), 0
	for to := range n.nodes {
		rules := faulting(l, to, n.addr)
		if rules != faulting(n.now, to, n.addr) {
			errs = append(errs, n.inside(to, rules, "nft", "-f", "-"))
		}
		for from := range n.nodes {
			delay, mbit = max(delay, l[from][to].Delay), max(mbit, l[from][to].MBit)
		}
	}
	n.now = l
	return errors.Join(append(errs, n.setDelay(delay), n.narrow(mbit))...)
}

func (n *namespaces) close() error {
	var err error
	if n.tunnels != nil {
		err = n.tunnels.close()
	}
	if n.names != nil {
		err = errors.Join(err, n.names.Close())
	}
	err = errors.Join(err, removeSpaces(func(space string) bool { return strings.HasPrefix(space, n.prefix+"-") }))
	if n.madeFiles {
		_ = os.Remove(spaceFiles) // others may have files there by now
	}
	return err
}

// removeSpaces deletes the namespaces of those names.
func removeSpaces(which func(space string) bool) error {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 && which(f[0]) {
			errs = append(errs, os.RemoveAll(filepath.Join(spaceFiles, f[0])), command("", "ip", "netns", "del", f[0]))
		}
	}
	return errors.Join(errs...)
}

// ofRun is the name of a namespace of some run, with the id of its process.
var ofRun = regexp.MustCompile(`^` + spacePrefix + `(\d+)-`)

// removeLeftovers deletes what runs have left that were killed. That it fails is no reason not to run.
func removeLeftovers() {
	_ = removeSpaces(func(space string) bool {
		m := ofRun.FindStringSubmatch(space)
		if m == nil {
			return false
		}
		pid, err := strconv.Atoi(m[1])
		return err == nil && syscall.Kill(pid, 0) == syscall.ESRCH
	})
}

// Names: in each namespace a DNS server answers on loopback, where no fault of the network hits it, and files that ip
// binds over those in /etc, for what it starts there, lead to it.

// spaceFiles is where ip looks for files that a namespace has in place of those in /etc.
const spaceFiles = "/etc/netns"

// etcFiles are those of every namespace, by name: nothing but DNS is asked.
var etcFiles = map[string]string{"resolv.conf": "nameserver 127.0.0.1\n", "hosts": "127.0.0.1 localhost\n",
	"nsswitch.conf": "hosts: files dns\n"}

// hostName is the name of a node, as long as all nodes are known by names.
func hostName(slot int) string { return name(slot) + ".chaos.test" }

// byNames gives every node a name and a DNS server that knows all names.
func (n *namespaces) byNames() error {
	var conns []net.PacketConn
	n.madeFiles = os.Mkdir(spaceFiles, 0o755) == nil
	for slot := range n.nodes {
		err := writeEtc(filepath.Join(spaceFiles, n.space(slot)))
		if err == nil {
			err = inSpace(n.space(slot), func() error {
				conn, err := net.ListenPacket("udp4", "127.0.0.1:53")
				conns = append(conns, conn)
				return err
			})
		}
		if err != nil {
			for _, conn := range conns {
				if conn != nil {
					_ = conn.Close()
				}
			}
			return fmt.Errorf("names of nodes: %w", err)
		}
	}
	n.names = bootruns.ServeNames(conns...)
	for slot := range n.nodes {
		n.names.Set(hostName(slot)+".", n.addr(slot))
	}
	return nil
}

// writeEtc writes the files of a namespace of which the machine has its own.
func writeEtc(dir string) error {
	errs := []error{os.MkdirAll(dir, 0o755)}
	for file, text := range etcFiles {
		if _, err := os.Stat(filepath.Join("/etc", file)); err == nil {
			errs = append(errs, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
	}
	return errors.Join(errs...)
}

// trouble makes the DNS of all namespaces fail, or fail no more.
func (n *namespaces) trouble(t bootruns.Trouble) { n.names.Trouble(t) }
