// The list of planted bugs.

package main

// bugs is the list that `make planted` repeats. Each entry is one mistake that a person could make in good faith.
var bugs = []bug{}
