// A partition between real processes, in a network namespace: the page shows both sides of it.

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Three nodes, of which one is cut off: each side accuses the other one, the page shows both, and names the nodes that
// handle no messages any more; when the link is back, or the lost side has been ordered to end, that shows as well
// (SBR-1).
func TestPartition(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the program ip")
	}
	const space, inner, outer = "kithpage", "10.231.77.2", "10.231.77.1" // the cluster's link
	const innerSide, outerSide = "10.231.78.2", "10.231.78.1"            // the link by which the page asks
	ip := func(args ...string) {
		t.Helper()
		out, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %v: %s", args, out)
	}
	_ = exec.Command("ip", "netns", "del", space).Run()
	if out, err := exec.Command("ip", "netns", "add", space).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space).Run() })
	for i, side := range [][2]string{{outer, inner}, {outerSide, innerSide}} {
		here, there := fmt.Sprintf("kithpage%da", i), fmt.Sprintf("kithpage%db", i)
		ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
		ip("addr", "add", side[0]+"/24", "dev", here)
		ip("link", "set", here, "up")
		ip("netns", "exec", space, "ip", "addr", "add", side[1]+"/24", "dev", there)
		ip("netns", "exec", space, "ip", "link", "set", there, "up")
	}
	ip("netns", "exec", space, "ip", "link", "set", "lo", "up")
	run := []string{kith, "run", "--insecure", "--demo", "--seeds=" + outer + ":17355", "--listen"}
	started := `admin-started address=(\S+)`
	_, a1 := spawnAs(t, started, append(run, outer+":17355", "--admin=127.0.0.1:0")...)
	_, a2 := spawnAs(t, started, append(run, outer+":17356", "--admin=127.0.0.1:0")...)
	_, a3 := spawnAs(t, started, append(append([]string{"ip", "netns", "exec", space}, run...), inner+":17355",
		"--admin="+innerSide+":0")...)
	_, address := spawn(t, `dashboard (http://\S+)`, "dashboard", "n1="+a1, "n2="+a2, "n3="+a3)
	b := open(t, address, 1360, 900)
	b.until(`["n1", "n2", "n3"].length === document.querySelectorAll("#ring .node.up").length`)
	b.until(`document.querySelector("#banner.good")`)
	b.clean()

	cell := func(row, column int) string {
		return fmt.Sprintf(`document.querySelector("#reach tbody tr:nth-child(%d) td:nth-of-type(%d)").innerText`, row, column)
	}
	for row := range 3 {
		for column := range 3 {
			if row != column {
				b.until(`%s === "✓"`, cell(row+1, column+1))
			}
		}
	}
	ip("link", "set", "kithpage0a", "down")
	b.until(`%s === "✕" && %s === "✕" && %s === "✕" && %s === "✕"`, cell(1, 3), cell(2, 3), cell(3, 1), cell(3, 2))
	require.Equal(t, []string{"✓", "✓"}, []string{js[string](b, "%s", cell(1, 2)), js[string](b, "%s", cell(2, 1))})
	b.until(`document.querySelector("#banner.bad").innerText.includes("The cluster is split: n1, n2 | n3.")`)
	b.picture("dashboard-partition.png")
	b.until(`document.querySelector("#banner.bad").innerText.match(/n3/)`)
	b.until(`document.querySelector("#decisions").innerText.match(/keep-majority: 2 of 3 members reachable/)`)
	b.until(`%s.classList.contains("gone")`, ring("n3"))
	require.Contains(t, js[string](b, `document.querySelector("#decisions").innerText`), "n1")
	b.clean()
}
