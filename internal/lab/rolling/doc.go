// Package rolling restarts the processes of a real cluster one after the other, gracefully and under load, and says
// what became of every message and how long every ask took.
package rolling
