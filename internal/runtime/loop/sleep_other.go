// How a loop sleeps where the kernel is not Linux: as gnet has it sleep.

//go:build !linux

package loop

import (
	"errors"
	"time"
)

const canRest = false

func restOver([]pollFd, time.Duration) {}

type pollSet struct{}

func newPollSet() (*pollSet, error) { return nil, errors.ErrUnsupported }

func (n *pollSet) add(int) error { return nil }
func (n *pollSet) remove(int)    {}
func (n *pollSet) wait()         {}
func (n *pollSet) close()        {}
func (n *pollSet) call()         {}

type listener struct{}

func (l *listener) hears(*pollSet) bool { return false }
