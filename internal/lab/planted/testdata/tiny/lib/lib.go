// Package lib adds. A planted bug makes it wrong.
package lib

// Add returns a + b.
func Add(a, b int) int { return a + b }

// Twice returns 2a.
func Twice(a int) int { return Add(a, a) }
