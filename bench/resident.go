// Resident memory: what the operating system counts for this process, now and at most.

package bench

import (
	"os"
	"strconv"
	"strings"
)

// Resident returns the bytes of memory that this process has resident now, and the most that it ever had. Both are zero
// where the system does not tell (it needs Linux's /proc).
func Resident() (now, peak uint64) {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64)
			now = pages * uint64(os.Getpagesize())
		}
	}
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				peak = kb << 10
			}
		}
	}
	return now, max(peak, now)
}
