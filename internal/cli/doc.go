// Package cli holds what the commands share: child processes that answer calls over their pipes, the last line that
// every long command prints, progress on a terminal, and pinning a process to cores.
package cli
