// Tests of limits of memory: both versions of control groups, in a container and outside (CARD-2).

package memlimit

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const (
	own = "proc/self/cgroup"
	v1  = "12:cpu,cpuacct:/a\n5:memory:/kubepods/pod7\n0::/kubepods/pod7\n"

	most1 = "sys/fs/cgroup/memory/memory.limit_in_bytes"
	pod1  = "sys/fs/cgroup/memory/kubepods/pod7/memory.limit_in_bytes"
	most2 = "sys/fs/cgroup/memory.max"
	unit  = "sys/fs/cgroup/system.slice/kith.service/memory.max"
	slice = "sys/fs/cgroup/system.slice/memory.max"
	none1 = "9223372036854771712\n"
)

func TestOf(t *testing.T) {
	const service = "0::/system.slice/kith.service\n"
	for name, c := range map[string]struct {
		files map[string]string
		limit int64
	}{
		"no control groups":         {nil, 0},
		"version 2 in a container":  {map[string]string{own: "0::/\n", most2: "1073741824\n"}, 1 << 30},
		"without a limit":           {map[string]string{own: "0::/\n", most2: "max\n"}, 0},
		"a service of systemd":      {map[string]string{own: service, unit: "500\n"}, 500},
		"the group above has less":  {map[string]string{own: service, unit: "500\n", slice: "400\n"}, 400},
		"the group below has less":  {map[string]string{own: service, unit: "300\n", slice: "400\n"}, 300},
		"version 1 in a container":  {map[string]string{own: v1, most1: "700\n"}, 700},
		"version 1 on the machine":  {map[string]string{own: v1, pod1: "600\n", most1: none1}, 600},
		"version 1 without a limit": {map[string]string{own: v1, most1: none1}, 0},
		"files that are none":       {map[string]string{own: "nonsense\n:\n0::/\n\n", most2: "-5\n"}, 0},
		"a path above the mount":    {map[string]string{own: "0::/../..\n", most2: "800\n"}, 800},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			limit, ok := Of(root)
			require.Equal(t, c.limit, limit)
			require.Equal(t, c.limit > 0, ok)
		})
	}
}

// Whatever this machine has, it is read.
func TestOfThisMachine(t *testing.T) {
	limit, ok := Of(os.DirFS("/"))
	require.Equal(t, ok, limit > 0)
}
