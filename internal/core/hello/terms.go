// Terms: what a node has that must be the same at the other end of a connection, and when a hello is judged by it.

package hello

import "github.com/kith-io/kith/wire"

// Term is one value that must agree: it is said in every hello, and every acceptor compares its own. A key that only
// one end says is not compared.
type Term struct {
	Setting
	// Since is the wire version that brought the term: a hello that offers none so new does not say it.
	Since uint16
	// Join says that a join compares it too, and ends the joiner with both values. So it is not judged while exactly one
	// of the two nodes is in a cluster.
	Join bool
}

// Said returns the settings of a hello that offers these versions.
func Said(terms []Term, v wire.Versions) []Setting {
	var list []Setting
	for i := range terms {
		if terms[i].Since <= v.Newest {
			list = append(list, terms[i].Setting)
		}
	}
	return list
}
