// How much memory a run took at most, as the operating system counts.

package scale

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// maxRSS returns the largest resident set of this process in MiB; where the system does not tell, what the runtime
// holds now.
func maxRSS() int {
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				if kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")); err == nil {
					return kb >> 10
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys >> 20)
}
