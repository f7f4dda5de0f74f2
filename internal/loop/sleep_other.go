// How a loop sleeps where the kernel is not Linux: as gnet has it sleep.

//go:build !linux

package loop

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const canRest = false

func restOver([]unix.PollFd, time.Duration) {}

type nest struct{}

func newNest() (*nest, error) { return nil, errors.ErrUnsupported }

func (n *nest) add(int) error { return nil }
func (n *nest) remove(int)    {}
func (n *nest) wait()         {}
func (n *nest) close()        {}
func (n *nest) call()         {}

type listener struct{}

func (l *listener) hears(*nest) bool { return false }
