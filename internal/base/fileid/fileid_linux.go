// The name of a file on Linux: its inode, and when that was made, which no program can set.

package fileid

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func name(f *os.File) string {
	var s unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &s)
	if err != nil || s.Mask&unix.STATX_INO == 0 || s.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%x-%x.%x", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
