// Package fleet is what the commands share that run several node processes: names and certificates of throw-away
// clusters, calls to all processes at once, what is waited for, the end of each, and
// numbered messages.
package fleet

import "fmt"

// Name names the i-th node, from zero on.
func Name(i int) string { return fmt.Sprintf("n%d", i+1) }

// Names returns the names of n nodes.
func Names(n int) (list []string) {
	for i := range n {
		list = append(list, Name(i))
	}
	return list
}
